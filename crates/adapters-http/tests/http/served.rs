//! The interface over mocks of the ports, on a real socket.

use std::{net::TcpListener, sync::Arc, time::Duration};

use animal_store_adapters_http::{AllowedOrigins, Limits, UseCases, serve_api};
use animal_store_app::{
    ApiKey, Authenticate, CreatePet, GetPet, ListPets, Scope,
    ports::{MockApiKeyDirectory, MockPetRepository},
    test_support::api_key,
};
use ureq::{
    Agent, Body,
    http::{Request, Response},
};

/// A server over mocks, as long as it lives.
pub(crate) struct Served {
    base: String,
    agent: Agent,
    _runtime: tokio::runtime::Runtime,
}

impl Served {
    pub(crate) fn with(repository: MockPetRepository, directory: MockApiKeyDirectory) -> Self {
        Self::with_origins(AllowedOrigins::These(Vec::new()), repository, directory)
    }

    /// For pages of these origins too.
    pub(crate) fn with_origins(
        origins: AllowedOrigins,
        repository: MockPetRepository,
        directory: MockApiKeyDirectory,
    ) -> Self {
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
            let (server, _) = serve_api(listener, &limits, origins, move || use_cases.clone()).expect("a server");
            server.run().await
        });
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .proxy(None)
            .build()
            .into();
        Self { base, agent, _runtime: runtime }
    }

    /// A request to a path below `/v1/pets`, with this body.
    pub(crate) fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Response<Body> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        let request = request.header("Authorization", "Bearer x").header("Content-Type", content_type);
        if body.is_empty() {
            return self.agent.run(request.body(()).expect("a request")).expect("an answer");
        }
        self.agent.run(request.body(body.as_bytes()).expect("a request")).expect("an answer")
    }

    /// GET of a path below `/v1/pets`.
    pub(crate) fn get(&self, path: &str) -> Response<Body> {
        // So that its line of the log can be told from others.
        self.get_with(path, &[("X-Request-Id", path.trim_start_matches('/'))])
    }

    /// GET of a path below `/v1/pets`, with these headers.
    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        self.send_with("GET", path, headers)
    }

    /// A request without a body to a path below `/v1/pets`, with these headers.
    pub(crate) fn send_with(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.header("Authorization", "Bearer x");
        self.agent.run(request.body(()).expect("a request")).expect("an answer")
    }

    /// POST of an animal.
    pub(crate) fn post(&self) -> Response<Body> {
        self.post_with(&[])
    }

    /// POST of an animal with these headers.
    pub(crate) fn post_with(&self, headers: &[(&str, &str)]) -> Response<Body> {
        let request = self.agent.post(&self.base).header("Authorization", "Bearer x");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.header("Content-Type", "application/json").send(r#"{"name":"Rex","categoryId":1}"#).expect("an answer")
    }
}

/// Every token belongs to the key `key`.
pub(crate) fn any_key() -> MockApiKeyDirectory {
    let mut directory = MockApiKeyDirectory::new();
    directory.expect_find().returning(|_| Ok(Some(Arc::new(api_key("key")))));
    directory
}

/// Every token belongs to a key with these scopes.
pub(crate) fn key_with(scopes: &[Scope]) -> MockApiKeyDirectory {
    let key = Arc::new(ApiKey { scopes: scopes.iter().copied().collect(), ..api_key("key") });
    let mut directory = MockApiKeyDirectory::new();
    directory.expect_find().returning(move |_| Ok(Some(key.clone())));
    directory
}
