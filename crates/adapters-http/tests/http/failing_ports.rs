//! What clients see when a port fails.

use animal_store_app::{
    ports::{AddPetError, ApiKeyDirectoryError, MockApiKeyDirectory, MockPetRepository, StorageError},
    test_support::pet,
};
use serde_json::{Value, json};
use ureq::{Body, http::Response};

use crate::served::{Served, any_key};

const SECRET: &str = "password of the database";

fn error(status: u16, code: &str, message: &str) -> Value {
    json!({ "code": code, "message": message, "status": status })
}

fn unavailable() -> Value {
    error(503, "unavailable", "the service is unavailable; retry later")
}

#[track_caller]
fn assert_answer(mut response: Response<Body>, retry_after: Option<&str>, body: &Value) {
    assert_eq!(response.status().as_u16(), body["status"]);
    assert_eq!(response.headers().get("retry-after").map(|value| value.to_str().expect("ASCII")), retry_after);
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let text = response.body_mut().read_to_string().expect("a body");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), *body);
}

#[test]
fn storage_that_is_away_is_a_503_that_says_when_to_try_again() {
    let mut repository = MockPetRepository::new();
    repository.expect_list().returning(|_, _, _| Err(StorageError::Unavailable(SECRET.into())));
    repository.expect_find().returning(|_| Err(StorageError::Timeout));
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

    let body = error(503, "overloaded", "the service is overloaded; retry later");
    assert_answer(served.post(), Some("1"), &body);
}

#[test]
fn an_animal_that_may_have_been_added_is_a_503_that_does_not_invite_to_try_again() {
    let mut repository = MockPetRepository::new();
    repository.expect_add().returning(|_| Err(AddPetError::OutcomeUnknown(SECRET.into())));
    let served = Served::with(repository, any_key());

    let message = "the pet may have been added; check before you retry without an Idempotency-Key";
    assert_answer(served.post(), None, &error(503, "outcome_unknown", message));
}

#[test]
fn a_create_whose_idempotency_key_is_busy_is_a_409_that_says_when_to_try_again() {
    let mut repository = MockPetRepository::new();
    repository.expect_add().returning(|_| Err(AddPetError::IdempotencyConflict));
    let served = Served::with(repository, any_key());

    let message = "an earlier request with this Idempotency-Key is in flight; retry later";
    let body = error(409, "idempotency_conflict", message);
    assert_answer(served.post_with(&[("Idempotency-Key", "order-1")]), Some("1"), &body);
}

#[test]
fn an_idempotency_key_of_another_animal_is_a_422() {
    let mut repository = MockPetRepository::new();
    repository.expect_add().returning(|_| Err(AddPetError::IdempotencyMismatch));
    let served = Served::with(repository, any_key());

    let message = "this Idempotency-Key was used for another pet";
    let body = error(422, "idempotency_mismatch", message);
    assert_answer(served.post_with(&[("Idempotency-Key", "order-1")]), None, &body);
}

#[test]
fn a_row_that_is_no_animal_is_a_500_that_tells_nothing() {
    let mut repository = MockPetRepository::new();
    repository.expect_find().returning(|_| Err(StorageError::Corrupt(SECRET.into())));
    let served = Served::with(repository, any_key());

    assert_answer(served.get("/1"), None, &error(500, "internal_error", "internal error"));
}

#[test]
fn a_directory_that_is_away_is_a_503_never_a_401() {
    for (failure, code) in [
        (|| ApiKeyDirectoryError::Unavailable(SECRET.into()), "unavailable"),
        (|| ApiKeyDirectoryError::Timeout, "unavailable"),
        (|| ApiKeyDirectoryError::Overloaded, "overloaded"),
    ] as [(fn() -> ApiKeyDirectoryError, &str); 3]
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

    assert_answer(served.get("/1"), None, &error(500, "internal_error", "internal error"));
    assert_eq!(served.get("").status(), 200);
}
