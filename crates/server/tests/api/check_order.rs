//! The order of checks: if two things are wrong with a request, the response is about the earlier one.
//!
//! `crates/adapters-http/tests/http` has the checks before the API key, and those of scopes.

use std::time::Duration;

use animal_store_test_servers::{Request, Response, wait_until};

use crate::{
    raw_requests::{begin_post, post_head},
    test_app::{PET, TestApp},
};

fn too_large() -> String {
    "x".repeat(16_385)
}

/// Requests with a valid API key, and with another mistake each: 404, 405, 415, 413, 400.
fn mistakes(app: &TestApp) -> [Request; 5] {
    [
        app.request("GET", "/v1/nowhere"),
        app.request("DELETE", "/v1/pets"),
        app.request("POST", "/v1/pets").body(PET),
        app.request("POST", "/v1/pets").json(too_large()),
        app.request("GET", "/v1/pets?limit=0"),
    ]
}

fn with_unknown_key(app: &TestApp) -> Response {
    app.anonymous("GET", "/v1/nowhere").header("Authorization", "Bearer unknown").send()
}

#[test]
fn a_missing_key_comes_before_everything_else() {
    let app = TestApp::start();
    let post = || app.anonymous("POST", "/v1/pets");

    for request in [
        app.anonymous("GET", "/v1"),
        app.anonymous("GET", "/v1/nowhere"),
        app.anonymous("GET", "/v1/../live"),
        app.anonymous("DELETE", "/v1/pets"),
        app.anonymous("OPTIONS", "/v1/pets"),
        post().header("Content-Encoding", "gzip").json(PET),
        post().body(PET),
        post().json(too_large()),
        post().json("{"),
        post().header("Idempotency-Key", "a b").json(PET),
        app.anonymous("GET", "/v1/pets?limit=0&status=x&cursor=x"),
        app.anonymous("GET", "/v1/pets/abc"),
    ] {
        let response = request.send();
        response.assert_header("Allow", None).assert_header("Accept-Encoding", None);
        response.assert_error(401, "missing_api_key");
    }
    with_unknown_key(&app).assert_error(401, "invalid_api_key");
}

#[test]
fn a_key_beyond_its_share_comes_after_an_invalid_key_and_before_everything_else() {
    // The request in flight takes the only one of this second.
    let keys = [("http.workers", "1"), ("http.rate_limit.per_second", "1")];
    let app = TestApp::start_limited(&keys, |limits| limits.max_in_flight_per_key = 1);
    let _slow = begin_post(&app, "Content-Length: 30\r\n");

    with_unknown_key(&app).assert_error(401, "invalid_api_key");
    for request in mistakes(&app) {
        request.send().assert_error(503, "overloaded");
    }
}

#[test]
fn an_address_with_too_many_failures_comes_before_everything_else() {
    let app = TestApp::start_with(&[("http.auth_failures.per_minute", "1")]);
    app.anonymous("GET", "/v1/pets").send().assert_error(401, "missing_api_key");

    with_unknown_key(&app).assert_error(429, "rate_limited");
    for request in mistakes(&app) {
        request.send().assert_error(429, "rate_limited");
    }
}

#[test]
fn a_key_beyond_its_rate_comes_after_an_invalid_key_and_before_everything_else() {
    let app = TestApp::start_with(&[("http.rate_limit.per_second", "1"), ("http.deprecated_get", "gone")]);

    // The quota grows by one request per second, so that a request can be admitted.
    for index in 0..mistakes(&app).len() {
        wait_until(|| mistakes(&app).into_iter().nth(index).is_some_and(|request| request.send().status == 429));
        with_unknown_key(&app).assert_error(401, "invalid_api_key");
    }
    wait_until(|| app.get("/v1/pets/1").status == 429);
}

#[test]
fn a_removed_operation_comes_after_the_method_and_before_the_id() {
    let app = TestApp::start_with(&[("http.deprecated_get", "gone")]);

    app.request("DELETE", "/v1/pets/1").send().assert_error(405, "method_not_allowed");
    app.get("/v1/pets/1/owner").assert_error(404, "route_not_found");
    for path in ["/v1/pets/1", "/v1/pets/abc"] {
        app.request("GET", path).header("Content-Encoding", "gzip").body("x").send().assert_error(410, "gone");
    }
}

#[test]
fn the_route_comes_before_the_method_and_the_method_before_everything_else() {
    let app = TestApp::start();
    for (method, path) in [("DELETE", "/v1/nowhere"), ("PATCH", "/v1/pets/1/nowhere"), ("POST", "/nowhere")] {
        let response = app.request(method, path).json(PET).send();
        response.assert_header("Allow", None).assert_error(404, "route_not_found");
    }

    let put = || app.request("PUT", "/v1/pets");
    for request in [
        put().header("Content-Encoding", "gzip").json(PET),
        put().body(PET),
        put().json(too_large()),
        put().json("{"),
        put().header("Idempotency-Key", "a b").json(PET),
        app.request("DELETE", "/v1/pets?limit=0"),
        app.request("DELETE", "/v1/pets/abc"),
    ] {
        request.send().assert_error(405, "method_not_allowed");
    }
}

#[test]
fn the_media_type_comes_before_the_size_and_both_come_before_an_invalid_header_and_the_body() {
    let app = TestApp::start();
    let post = || app.request("POST", "/v1/pets").header("Idempotency-Key", "a b");
    let large_pet = format!("{PET}{}", " ".repeat(16_384));

    for body in [&*too_large(), PET, "{"] {
        for response in [
            post().header("Content-Type", "text/plain").body(body).send(),
            post().header("Content-Encoding", "gzip").json(body).send(),
            post().body(body).send(),
            post().header("Content-Type", "text/plain").chunked(body).send(),
        ] {
            response.assert_error(415, "unsupported_media_type");
        }
    }
    for body in [too_large(), large_pet, "[".repeat(20_000)] {
        post().json(&body).send().assert_error(413, "payload_too_large");
        post().header("Content-Type", "application/json").chunked(&body).send().assert_error(413, "payload_too_large");
    }
}

#[test]
fn the_size_comes_before_the_timeout_of_the_body_and_the_timeout_before_its_content() {
    let app = TestApp::start_limited(&[], |limits| limits.body_timeout = Duration::from_millis(200));

    app.send(post_head("Content-Length: 16385\r\n")).response().assert_error(413, "payload_too_large");
    let mut late = begin_post(&app, "Content-Length: 30\r\n");
    late.send("{");
    late.response().assert_error(408, "request_timeout");
}

#[test]
fn an_invalid_header_comes_before_the_content_of_the_body_and_after_a_missing_body() {
    let app = TestApp::start();
    let post = || app.request("POST", "/v1/pets").header("Idempotency-Key", "a b");

    for body in ["{", "{}", r#"{"name":1}"#] {
        post().json(body).send().assert_error(400, "invalid_header");
    }
    post().send().assert_error(400, "invalid_body");
}

#[test]
fn every_other_mistake_comes_before_the_pet_of_an_idempotency_key() {
    let app = TestApp::start();
    let post = || app.request("POST", "/v1/pets").header("Idempotency-Key", "order-1");
    post().json(PET).send().assert_status(201);

    post().json(r#"{"name":"Tom","categoryId":7}"#).send().assert_error(422, "idempotency_mismatch");
    post().json(r#"{"name":"Tom"}"#).send().assert_error(400, "invalid_body");
    post().header("Idempotency-Key", "order-1").json(PET).send().assert_error(400, "invalid_header");
}
