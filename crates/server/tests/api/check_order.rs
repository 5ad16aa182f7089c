//! The order of checks: if several things are wrong with a request, the response is about the earliest one.
//!
//! `crates/adapters-http` has the checks before the API key, and those of the share and the rate of a key and of scopes.

use std::time::Duration;

use crate::prelude::*;

/// Requests of which each lacks the first mistake of the one before it, and the error of their first one: 404, 405,
/// 415, 413, 400 for a missing body, for a header and for a body. The last two have a mistake of their own.
fn mistakes(request: impl Fn(&str, &str) -> Request) -> Vec<(Request, u16, &'static str)> {
    let too_large = || "x".repeat(16_385);
    let with = |method, path, media_type: &str| {
        request(method, path)
            .header("Idempotency-Key", "a b")
            .header("Content-Type", media_type)
    };
    let post = |media_type| with("POST", "/v1/pets", media_type);
    let json = "application/json";
    vec![
        (
            with("PUT", "/v1/nowhere", "text/plain").body(too_large()),
            404,
            "route_not_found",
        ),
        (
            with("PUT", "/v1/pets", "text/plain").body(too_large()),
            405,
            "method_not_allowed",
        ),
        (
            with("PROPFIND", "/v1/pets/abc?limit=0", "text/plain").body(too_large()),
            405,
            "method_not_allowed",
        ),
        (
            post("text/plain").body(too_large()),
            415,
            "unsupported_media_type",
        ),
        (
            post("text/plain").chunked(too_large()),
            415,
            "unsupported_media_type",
        ),
        (
            post(json)
                .header("Content-Encoding", "gzip")
                .body(too_large()),
            415,
            "unsupported_media_type",
        ),
        (post(json).body(too_large()), 413, "payload_too_large"),
        (post(json).chunked(too_large()), 413, "payload_too_large"),
        (
            post(json).body(format!("{PET}{}", " ".repeat(16_384))),
            413,
            "payload_too_large",
        ),
        (post("text/plain"), 400, "invalid_body"),
        (post(json).body("{"), 400, "invalid_header"),
        (post(json).body("{}"), 400, "invalid_header"),
        (request("GET", "/v1/pets?limit=0"), 400, "invalid_query"),
        (request("GET", "/v1/pets/abc"), 404, "pet_not_found"),
    ]
}

#[test]
fn the_route_the_method_the_type_the_size_the_header_and_the_body_are_checked_in_this_order() {
    let app = TestApp::start();
    for (request, status, code) in mistakes(|method, path| app.request(method, path)) {
        request.send().assert_error(status, code);
    }
}

#[test]
fn a_missing_key_comes_before_everything_else() {
    let app = TestApp::start();
    for (request, _, _) in mistakes(|method, path| app.anonymous(method, path)) {
        let response = request.send();
        response
            .assert_header("Allow", None)
            .assert_header("Accept-Encoding", None);
        response.assert_error(401, "missing_api_key");
    }
    let unknown = HttpClient::new(app.address).with_token("unknown");
    unknown
        .get("/v1/nowhere")
        .assert_error(401, "invalid_api_key");
}

#[test]
fn the_size_comes_before_the_timeout_of_the_body_and_the_timeout_before_its_content() {
    let app = TestApp::start_changed(&[], |config| {
        config.http.connections.body_timeout = Duration::from_millis(1);
    });

    let large = app.send(post_head("Content-Length: 16385\r\n")).response();
    large.assert_error(413, "payload_too_large");
    let late = post_head("Idempotency-Key: a b\r\nContent-Length: 30\r\n") + "{";
    let late = app.send(late).response();
    late.assert_error(408, "request_timeout");
}

#[test]
fn an_invalid_pet_or_header_comes_before_the_pet_of_an_idempotency_key() {
    let app = TestApp::start();
    let post = |body: &str| {
        let create = app.request("POST", "/v1/pets").json(body);
        create.header("Idempotency-Key", "order-1")
    };
    post(PET).send().assert_status(201);
    let twice = post(PET).header("Idempotency-Key", "order-1");
    for (request, status, code) in [
        (
            post(r#"{"name":"Tom","categoryId":7}"#),
            422,
            "idempotency_mismatch",
        ),
        (post(r#"{"name":"Tom"}"#), 400, "invalid_body"),
        (twice, 400, "invalid_header"),
    ] {
        request.send().assert_error(status, code);
    }
}
