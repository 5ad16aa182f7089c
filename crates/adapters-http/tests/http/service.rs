//! The HTTP interface over mocks of the ports, on a real socket.

use std::{net::SocketAddr, sync::Arc};

use animal_store_adapters_http::{
    AllowedOrigins, ApiServer, ApiSettings, TrustedProxies, UseCases, serve_api,
};
use animal_store_app::{
    ApiKey, Scope,
    ports::{ApiKeyDirectory, MockApiKeyDirectory, MockPetRepository},
    test_support::{api_key, unrecorded_uses},
};
use animal_store_http1::HttpListener;
use animal_store_test_servers::{HttpClient, Request, Response};
use prometheus_client::{encoding::text::encode_registry, registry::Registry};

/// An origin whose pages may use the service.
pub(crate) const SHOP: &str = "https://shop.example";

/// A running service, behind a trusted proxy at 127.0.0.1. Dropping it stops the service.
pub(crate) struct Service {
    address: SocketAddr,
    client: HttpClient,
    registry: Registry,
    _server: ApiServer,
    _runtime: tokio::runtime::Runtime,
}

impl Service {
    pub(crate) fn start(repository: MockPetRepository, directory: MockApiKeyDirectory) -> Self {
        Self::start_with(repository, directory, |_| ())
    }

    /// Starts with changed settings.
    pub(crate) fn start_with(
        repository: MockPetRepository,
        directory: impl ApiKeyDirectory + 'static,
        change: impl FnOnce(&mut ApiSettings),
    ) -> Self {
        let directory = Arc::new(directory);
        let use_cases = UseCases::new(Arc::new(repository), directory, unrecorded_uses());
        let listener = HttpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = listener.address;
        let client = HttpClient::new(address).with_token("x");
        let mut settings = ApiSettings {
            origins: Some(AllowedOrigins::These(vec![SHOP.to_owned()])),
            proxies: TrustedProxies::parse(&["127.0.0.1".to_owned()]).expect("an address"),
            ..ApiSettings::default()
        };
        settings.connections.max_body_bytes = 1024;
        change(&mut settings);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let mut registry = Registry::default();
        let guard = runtime.enter();
        let started = serve_api(listener, settings, None, &mut registry, move || {
            use_cases.clone()
        });
        let (server, _) = started.expect("a server");
        drop(guard);
        Self {
            address,
            client,
            registry,
            _server: server,
            _runtime: runtime,
        }
    }

    /// A request to a path below `/v1/pets`, with an API key.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        self.client.request(method, &format!("/v1/pets{path}"))
    }

    /// A request to a path below `/v1/pets`, without an API key.
    pub(crate) fn anonymous(&self, method: &str, path: &str) -> Request {
        HttpClient::new(self.address).request(method, &format!("/v1/pets{path}"))
    }

    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry).expect("metrics");
        text
    }

    /// Asserts the lines of series in the metrics.
    #[track_caller]
    pub(crate) fn assert_metrics(&self, expected: &[&str]) {
        for line in expected {
            assert!(self.has_metric(line), "{line}\n{}", self.metrics());
        }
    }

    /// Whether the metrics have this line of a series.
    pub(crate) fn has_metric(&self, line: &str) -> bool {
        self.metrics().lines().any(|given| given == line)
    }

    /// GET of a path below `/v1/pets`, by a page of an allowed origin.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path).header("Origin", SHOP).send()
    }

    /// A create of a valid pet, by a page of an allowed origin.
    pub(crate) fn create(&self) -> Request {
        self.request("POST", "")
            .header("Origin", SHOP)
            .json(r#"{"name":"Rex","categoryId":1}"#)
    }
}

/// A directory in which every token belongs to the key `key`.
pub(crate) fn any_key() -> MockApiKeyDirectory {
    key_with(&[Scope::Read, Scope::Write])
}

/// A directory in which every token belongs to the key `key` with these scopes.
pub(crate) fn key_with(scopes: &[Scope]) -> MockApiKeyDirectory {
    let key = Arc::new(ApiKey {
        scopes: scopes.iter().copied().collect(),
        ..api_key("key")
    });
    let mut directory = MockApiKeyDirectory::new();
    directory
        .expect_find()
        .returning(move |_| Ok(Some(key.clone())));
    directory
}
