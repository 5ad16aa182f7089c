//! The order of checks: if two things are wrong with a request, the response is about the earlier one.

use animal_store_test_servers::{Request, Response, wait_until};

use crate::{
    raw_requests::begin_post,
    test_app::{PET, TestApp},
};

fn too_large() -> String {
    "x".repeat(16_385)
}

#[test]
fn a_missing_key_comes_before_everything_else() {
    let app = TestApp::start();
    let post = || app.anonymous("POST", "/v1/pets");

    for request in [
        app.anonymous("GET", "/v1"),
        app.anonymous("GET", "/v1/"),
        app.anonymous("GET", "/v1/nowhere"),
        app.anonymous("GET", "/v1/pets/"),
        app.anonymous("GET", "/v1/../live"),
        app.anonymous("DELETE", "/v1/nowhere"),
        app.anonymous("DELETE", "/v1/pets"),
        app.anonymous("POST", "/v1/pets/1").json(PET),
        app.anonymous("OPTIONS", "/v1/pets"),
        app.anonymous("get", "/v1/pets"),
        post().header("Content-Type", "text/plain").body(PET),
        post().header("Content-Encoding", "gzip").json(PET),
        post().body(PET),
        post().json(too_large()),
        post().json("{"),
        post().json(r#"{"name":1}"#),
        post().header("Idempotency-Key", "a b").json(PET),
        post(),
        app.anonymous("GET", "/v1/pets?limit=0&status=x&cursor=x"),
        app.anonymous("GET", "/v1/pets/1"),
        app.anonymous("GET", "/v1/pets/abc"),
    ] {
        let response = request.send();
        response.assert_header("Allow", None).assert_header("Accept-Encoding", None);
        response.assert_error(401, "missing_api_key");
    }
}

#[test]
fn an_unknown_key_comes_before_everything_else() {
    let app = TestApp::start();

    for (method, path) in [("GET", "/v1/nowhere"), ("DELETE", "/v1/pets"), ("GET", "/v1/pets?limit=0")] {
        let request = app.anonymous(method, path).header("Authorization", "Bearer unknown");
        request.send().assert_error(401, "invalid_api_key");
    }
    let request = app.anonymous("POST", "/v1/pets").header("Authorization", "Bearer un known").json(too_large());
    request.send().assert_error(401, "invalid_api_key");
}

#[test]
fn a_key_beyond_its_share_comes_after_an_invalid_key_and_before_everything_else() {
    let app = TestApp::start_with(&[("http.workers", "1"), ("http.max_in_flight_per_key", "1")]);
    let _slow = begin_post(&app, "Content-Length: 30\r\n");

    app.anonymous("GET", "/v1/nowhere").send().assert_error(401, "missing_api_key");
    let unknown = app.anonymous("GET", "/v1/pets").header("Authorization", "Bearer unknown");
    unknown.send().assert_error(401, "invalid_api_key");
    for request in [
        app.request("GET", "/v1/nowhere"),
        app.request("DELETE", "/v1/pets"),
        app.request("POST", "/v1/pets").body(PET),
        app.request("POST", "/v1/pets").json(too_large()),
        app.request("GET", "/v1/pets?limit=0"),
    ] {
        request.send().assert_error(503, "overloaded");
    }
}

#[test]
fn an_address_with_too_many_failures_comes_before_everything_else() {
    let app = TestApp::start_with(&[("http.auth_failures.per_minute", "1")]);
    app.anonymous("GET", "/v1/pets").send().assert_error(401, "missing_api_key");

    for request in [
        app.anonymous("GET", "/v1/nowhere"),
        app.anonymous("GET", "/v1/pets").header("Authorization", "Bearer unknown"),
        app.anonymous("GET", "/v1/pets").header("Authorization", "Bearer a b"),
        app.request("GET", "/v1/nowhere"),
        app.request("DELETE", "/v1/pets"),
        app.request("POST", "/v1/pets").json(too_large()),
    ] {
        request.send().assert_error(429, "rate_limited");
    }
}

#[test]
fn the_share_of_a_key_comes_before_its_rate() {
    let keys = [("http.workers", "1"), ("http.max_in_flight_per_key", "1"), ("http.rate_limit.per_second", "1")];
    let app = TestApp::start_with(&keys);
    // It takes the only permit and the only request of this second.
    let _slow = begin_post(&app, "Content-Length: 30\r\n");

    for _ in 0..3 {
        app.get("/v1/pets").assert_error(503, "overloaded");
    }
}

#[test]
fn a_key_beyond_its_rate_comes_after_an_invalid_key_and_before_everything_else() {
    let app = TestApp::start_with(&[("http.rate_limit.per_second", "1"), ("http.deprecated_get", "gone")]);

    // The quota grows by one request per second, so that a request can be admitted.
    let requests: [fn(&TestApp) -> Request; 6] = [
        |app| app.request("GET", "/v1/nowhere"),
        |app| app.request("DELETE", "/v1/pets"),
        |app| app.request("GET", "/v1/pets/1"),
        |app| app.request("POST", "/v1/pets").body(PET),
        |app| app.request("POST", "/v1/pets").json(too_large()),
        |app| app.request("GET", "/v1/pets?limit=0"),
    ];
    for request in requests {
        wait_until(|| request(&app).send().status == 429);
        app.anonymous("GET", "/v1/nowhere").send().assert_error(401, "missing_api_key");
        let unknown = app.anonymous("GET", "/v1/pets").header("Authorization", "Bearer unknown");
        unknown.send().assert_error(401, "invalid_api_key");
    }
}

#[test]
fn a_removed_operation_comes_after_the_method_and_before_the_id() {
    let app = TestApp::start_with(&[("http.deprecated_get", "gone")]);

    app.request("DELETE", "/v1/pets/1").send().assert_error(405, "method_not_allowed");
    app.get("/v1/pets/1/owner").assert_error(404, "route_not_found");
    for path in ["/v1/pets/1", "/v1/pets/abc"] {
        app.get(path).assert_error(410, "gone");
        app.request("GET", path).header("Content-Encoding", "gzip").body("x").send().assert_error(410, "gone");
    }
}

#[test]
fn the_route_comes_before_the_method() {
    let app = TestApp::start();

    for (method, path) in [("DELETE", "/v1/nowhere"), ("PATCH", "/v1/pets/1/nowhere"), ("POST", "/nowhere")] {
        let response = app.request(method, path).json(PET).send();
        response.assert_header("Allow", None).assert_error(404, "route_not_found");
    }
}

#[test]
fn the_method_comes_before_the_media_type_the_size_the_body_and_the_query() {
    let app = TestApp::start();
    let put = || app.request("PUT", "/v1/pets");
    let assert_method = |request: Request| request.send().assert_error(405, "method_not_allowed");

    assert_method(put().header("Content-Type", "text/plain").body(PET));
    assert_method(put().header("Content-Encoding", "gzip").json(PET));
    assert_method(put().json(too_large()));
    assert_method(put().json("{"));
    assert_method(app.request("DELETE", "/v1/pets?limit=0"));
    assert_method(app.request("DELETE", "/v1/pets/abc"));
    assert_method(app.request("POST", "/v1/pets/abc").header("Content-Type", "text/plain").body("x"));
    assert_method(put().header("Idempotency-Key", "a b").json(PET));
}

#[test]
fn the_media_type_comes_before_the_size_and_the_body() {
    let app = TestApp::start();
    let assert_type = |response: Response| response.assert_error(415, "unsupported_media_type");
    let post = || app.request("POST", "/v1/pets");

    for body in [&*too_large(), "{", r#"{"name":1}"#] {
        assert_type(post().header("Content-Type", "text/plain").body(body).send());
        assert_type(post().header("Content-Encoding", "gzip").json(body).send());
        assert_type(post().body(body).send());
        assert_type(post().header("Content-Type", "text/plain").chunked(body).send());
    }
}

#[test]
fn the_size_comes_before_the_body() {
    let app = TestApp::start();
    let invalid = format!(r#"{{"name":1,"padding":"{}"}}"#, "x".repeat(16_384));

    for body in [&*too_large(), &invalid, &"[".repeat(20_000)] {
        app.post(body).assert_error(413, "payload_too_large");
    }
}

#[test]
fn the_size_comes_before_the_timeout_of_the_body_and_the_timeout_before_its_content() {
    let app = TestApp::start_with(&[("http.body_timeout", "200ms")]);

    begin_post(&app, "Content-Length: 16385\r\n").response().assert_error(413, "payload_too_large");
    let mut late = begin_post(&app, "Content-Length: 30\r\n");
    late.send("{");
    late.response().assert_error(408, "request_timeout");
}

#[test]
fn the_media_type_and_the_size_come_before_an_invalid_header() {
    let app = TestApp::start();
    let post = || app.request("POST", "/v1/pets").header("Idempotency-Key", "a b");

    for body in [PET, "{", &too_large()] {
        post().body(body).send().assert_error(415, "unsupported_media_type");
        post().header("Content-Encoding", "gzip").json(body).send().assert_error(415, "unsupported_media_type");
    }
    for body in [too_large(), format!("{PET}{}", " ".repeat(16_384))] {
        post().json(&body).send().assert_error(413, "payload_too_large");
        post().header("Content-Type", "application/json").chunked(&body).send().assert_error(413, "payload_too_large");
    }
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
    post().json(too_large()).send().assert_error(413, "payload_too_large");
    post().body(PET).send().assert_error(415, "unsupported_media_type");
    let anonymous = app.anonymous("POST", "/v1/pets").header("Idempotency-Key", "order-1");
    anonymous.json(PET).send().assert_error(401, "missing_api_key");
}
