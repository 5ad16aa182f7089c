//! The limit on requests in flight, with a request that is kept in flight by the lookup of its API key.

use std::num::NonZeroU32;

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{service::SHOP, slow_service::SlowService};

/// Starts a service that allows one request in flight.
fn start() -> SlowService {
    SlowService::start(|settings| {
        settings.max_in_flight = 1;
        settings.auth_failures = Some(NonZeroU32::MIN);
    })
}

/// Sends a request that stays in flight until its release.
fn stall(slow: &SlowService) -> RawConnection {
    let connection = slow.begin("slow");
    wait_until(|| slow.started() == 1);
    connection
}

#[test]
fn requests_beyond_the_bound_are_a_503_before_their_api_key_is_checked() {
    let slow = start();
    let mut stalled = stall(&slow);
    let service = &slow.service;

    for request in [
        service.request("GET", ""),
        service.create(),
        service.anonymous("GET", ""),
        service.anonymous("GET", "/1/nowhere"),
        service.request("PROPFIND", ""),
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

    slow.release();
    stalled.response().assert_status(200);
    wait_until(|| service.has_metric("http_requests_in_flight 0"));
    service.get("").assert_status(200);
}

#[test]
fn an_overload_comes_before_the_failures_of_an_address_and_after_preflights() {
    let slow = start();
    let anonymous = |method| {
        let request = slow.service.anonymous(method, "").header("Origin", SHOP);
        request
            .header("Access-Control-Request-Method", "GET")
            .header("X-Forwarded-For", "203.0.113.1")
            .send()
    };
    anonymous("GET").assert_status(401);
    anonymous("GET").assert_status(429);

    let _stalled = stall(&slow);
    anonymous("GET").assert_error(503, "overloaded");
    anonymous("OPTIONS")
        .assert_status(200)
        .assert_header("Access-Control-Allow-Origin", Some(SHOP));
}
