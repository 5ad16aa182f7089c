//! What clients see when a port fails: served over a real socket, with mocks behind the use cases.

use std::{net::TcpListener, sync::Arc, time::Duration};

use animal_store_adapters_http::{Limits, UseCases, serve_api};
use animal_store_app::{
    ApiKey, ApiKeyId, Authenticate, CreatePet, GetPet, ListPets,
    ports::{AddError, DirectoryError, MockApiKeyDirectory, MockPetRepository, StorageError},
    test_support::pet,
};
use serde_json::{Value, json};
use ureq::{Agent, Body, http::Response};

const SECRET: &str = "password of the database";

/// A server over mocks, as long as it lives.
struct Served {
    base: String,
    agent: Agent,
    _runtime: tokio::runtime::Runtime,
}

impl Served {
    fn with(repository: MockPetRepository, directory: MockApiKeyDirectory) -> Self {
        let repository = Arc::new(repository);
        let use_cases = UseCases {
            authenticate: Authenticate::new(Arc::new(directory)),
            list_pets: ListPets::new(repository.clone()),
            create_pet: CreatePet::new(repository.clone()),
            get_pet: GetPet::new(repository),
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base = format!("http://{}/v1/pets", listener.local_addr().expect("an address"));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let limits = Limits {
            workers: 1,
            max_connections: 100,
            max_in_flight: 100,
            max_body_bytes: 1024,
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(5),
            answer_timeout: Duration::from_mins(1),
        };
        runtime.spawn(async move {
            let (server, _) = serve_api(listener, &limits, move || use_cases.clone()).expect("a server");
            server.await
        });
        let agent = Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        Self { base, agent, _runtime: runtime }
    }

    fn get(&self, path: &str) -> Response<Body> {
        self.agent.get(format!("{}{path}", self.base)).header("Authorization", "Bearer x").call().expect("an answer")
    }

    fn post(&self) -> Response<Body> {
        let request = self.agent.post(&self.base).header("Authorization", "Bearer x");
        request.header("Content-Type", "application/json").send(r#"{"name":"Rex","categoryId":1}"#).expect("an answer")
    }
}

fn any_key() -> MockApiKeyDirectory {
    let mut directory = MockApiKeyDirectory::new();
    directory.expect_find().returning(|_| Ok(Some(ApiKey { id: ApiKeyId::new("key") })));
    directory
}

fn error(status: u16, code: &str, message: &str) -> Value {
    json!({ "code": code, "message": message, "status": status })
}

fn unavailable() -> Value {
    error(503, "unavailable", "the service is temporarily unavailable; try again later")
}

#[track_caller]
fn assert_answer(mut response: Response<Body>, retry_after: Option<&str>, body: &Value) {
    assert_eq!(response.status().as_u16(), body["status"]);
    assert_eq!(response.headers().get("retry-after").map(|value| value.to_str().expect("ASCII")), retry_after);
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let text = response.body_mut().read_to_string().expect("a body");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), *body);
}

#[test]
fn storage_that_is_away_is_a_503_that_says_when_to_try_again() {
    let mut repository = MockPetRepository::new();
    repository.expect_list().returning(|_, _, _| Err(StorageError::Unavailable(SECRET.into())));
    repository.expect_find().returning(|_| Err(StorageError::Deadline));
    repository.expect_add().returning(|_| Err(StorageError::Unavailable(SECRET.into()).into()));
    let served = Served::with(repository, any_key());

    assert_answer(served.get(""), Some("1"), &unavailable());
    assert_answer(served.get("/1"), Some("1"), &unavailable());
    assert_answer(served.post(), Some("1"), &unavailable());
}

#[test]
fn storage_that_is_full_is_a_503_of_its_own_code() {
    let mut repository = MockPetRepository::new();
    repository.expect_add().returning(|_| Err(StorageError::Overloaded.into()));
    let served = Served::with(repository, any_key());

    let body = error(503, "overloaded", "the service has too much to do; try again later");
    assert_answer(served.post(), Some("1"), &body);
}

#[test]
fn an_animal_that_may_have_been_added_is_a_503_that_does_not_invite_to_try_again() {
    let mut repository = MockPetRepository::new();
    repository.expect_add().returning(|_| Err(AddError::OutcomeUnknown(SECRET.into())));
    let served = Served::with(repository, any_key());

    let message = "the animal may have been added; look for it before sending it again";
    assert_answer(served.post(), None, &error(503, "outcome_unknown", message));
}

#[test]
fn a_row_that_is_no_animal_is_a_500_that_tells_nothing() {
    let mut repository = MockPetRepository::new();
    repository.expect_find().returning(|_| Err(StorageError::Corrupt(SECRET.into())));
    let served = Served::with(repository, any_key());

    assert_answer(served.get("/1"), None, &error(500, "internal_error", "something went wrong on our side"));
}

#[test]
fn a_directory_that_is_away_is_a_503_never_a_401() {
    for (failure, code) in [
        (|| DirectoryError::Unavailable(SECRET.into()), "unavailable"),
        (|| DirectoryError::Deadline, "unavailable"),
        (|| DirectoryError::Overloaded, "overloaded"),
    ] as [(fn() -> DirectoryError, &str); 3]
    {
        let mut directory = MockApiKeyDirectory::new();
        directory.expect_find().returning(move |_| Err(failure()));
        let served = Served::with(MockPetRepository::new(), directory);

        let mut response = served.get("");
        assert_eq!(response.status(), 503);
        assert!(response.body_mut().read_to_string().expect("a body").contains(code));
    }
}

#[test]
fn a_panic_is_a_500_and_the_server_goes_on() {
    let mut repository = MockPetRepository::new();
    repository.expect_find().once().returning(|_| panic!("{SECRET}"));
    repository.expect_list().returning(|_, _, _| Ok(vec![pet(1)]));
    let served = Served::with(repository, any_key());

    assert_answer(served.get("/1"), None, &error(500, "internal_error", "something went wrong on our side"));
    assert_eq!(served.get("").status(), 200);
}
