//! The limits on requests in flight and on connections, with a request that is kept in flight by the lookup of its API key.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use animal_store_adapters_http::ApiSettings;
use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiToken,
    ports::{ApiKeyDirectory, MockPetRepository, StoreFailure},
    test_support::api_key,
};
use animal_store_test_servers::{RawConnection, wait_until};
use async_trait::async_trait;
use tokio::sync::Notify;

use crate::service::{SHOP, Service};

/// A directory in which every token belongs to one key. The lookup of the token `stalled` waits for a release.
#[derive(Clone, Default)]
struct StallingDirectory {
    stalled: Arc<AtomicBool>,
    release: Arc<Notify>,
}

#[async_trait]
impl ApiKeyDirectory for StallingDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        if digest == ApiToken::parse("stalled".into()).expect("a token").digest() {
            self.stalled.store(true, Ordering::Relaxed);
            self.release.notified().await;
        }
        Ok(Some(Arc::new(api_key("key"))))
    }
}

/// A service that allows one request in flight.
struct Overload {
    service: Service,
    directory: StallingDirectory,
}

impl Overload {
    fn prepare() -> Self {
        Self::prepare_changed(|_| ())
    }

    fn prepare_changed(change: impl FnOnce(&mut ApiSettings)) -> Self {
        let directory = StallingDirectory::default();
        let mut repository = MockPetRepository::new();
        repository.expect_list().returning(|_, _, _| Ok(Vec::new()));
        let service = Service::start_with(repository, directory.clone(), |settings| {
            settings.max_in_flight = 1;
            settings.auth_failures = Some(NonZeroU32::MIN);
            change(settings);
        });
        Self { service, directory }
    }

    /// Sends a request that stays in flight until its release.
    fn begin(&self) -> RawConnection {
        let stalled = self
            .service
            .anonymous("GET", "")
            .header("Authorization", "Bearer stalled");
        let connection = stalled.begin().expect("a connection");
        wait_until(|| self.directory.stalled.load(Ordering::Relaxed));
        connection
    }

    /// Releases the request, and waits until it has left the count.
    fn release(&self, mut stalled: RawConnection) {
        self.directory.release.notify_one();
        stalled.response().assert_status(200);
        wait_until(|| self.service.get("").status == 200);
    }
}

#[test]
fn requests_beyond_the_bound_are_a_503_before_their_api_key_is_checked() {
    let overload = Overload::prepare();
    let stalled = overload.begin();
    let service = &overload.service;

    for request in [
        service.request("GET", ""),
        service.create(),
        service.anonymous("GET", ""),
        service.anonymous("GET", "/1/nowhere"),
        service.request("DELETE", ""),
        service
            .request("POST", "")
            .header("Content-Type", "text/plain")
            .body("x"),
    ] {
        let response = request.send();
        response.assert_error(503, "overloaded");
        response
            .assert_header("Retry-After", Some("1"))
            .assert_header("Cache-Control", Some("no-store"));
        assert!(response.header("X-Request-Id").is_some());
    }
    service.assert_metrics(&[
        r#"http_requests_shed_total{reason="in_flight"} 6"#,
        "http_requests_in_flight 1",
    ]);

    overload.release(stalled);
    service.assert_metrics(&["http_requests_in_flight 0"]);
}

#[test]
fn an_overload_comes_before_the_failures_of_an_address() {
    let overload = Overload::prepare();
    let failing = || {
        overload
            .service
            .anonymous("GET", "")
            .header("X-Forwarded-For", "203.0.113.1")
            .send()
    };
    failing().assert_status(401);
    failing().assert_status(429);

    let stalled = overload.begin();
    failing().assert_error(503, "overloaded");
    overload.release(stalled);
}

#[test]
fn preflights_are_served_during_an_overload() {
    let overload = Overload::prepare();
    let _stalled = overload.begin();

    let preflight = overload
        .service
        .anonymous("OPTIONS", "")
        .header("Origin", SHOP);
    let response = preflight
        .header("Access-Control-Request-Method", "GET")
        .send();

    response
        .assert_status(200)
        .assert_header("Access-Control-Allow-Origin", Some(SHOP));
}

#[test]
fn connections_beyond_the_bound_are_served_when_others_end() {
    let overload = Overload::prepare_changed(|settings| {
        settings.connections.workers = 1;
        settings.connections.max_connections = 1;
    });
    let mut stalled = overload.begin();
    let service = &overload.service;
    let mut waiting = service.request("GET", "").begin().expect("a connection");
    wait_until(|| service.has_metric("http_connections_open 2"));

    overload.directory.release.notify_one();
    stalled.response().assert_status(200);
    waiting.response().assert_status(200);
}
