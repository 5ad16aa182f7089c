//! Cross-origin requests: refused by default, allowed for the origins in `http.cors_origins`.
//!
//! `crates/adapters-http/tests/http/cors.rs` covers the origins, methods and headers of preflights.

use animal_store_test_servers::{Request, Response};

use crate::{
    headers::requests_of_every_status,
    raw_requests::{fields, pet},
    test_app::TestApp,
};

/// The allowed origins.
const SHOP: &str = "https://shop.example";
const DEVELOPER: &str = "http://localhost:3000";
const FOREIGN: &str = "https://evil.example";

/// The items of `Vary` on every response, once any origin is allowed.
const VARY: [&str; 2] = ["access-control-request-method", "origin"];

fn app() -> TestApp {
    TestApp::start_with(&[(
        "http.cors_origins",
        "https://shop.example, http://localhost:3000",
    )])
}

fn preflight(app: &TestApp, path: &str, origin: &str) -> Request {
    let request = app.anonymous("OPTIONS", path).header("Origin", origin);
    request.header("Access-Control-Request-Method", "GET")
}

/// Asserts that the response has no CORS headers and does not vary by the origin.
#[track_caller]
fn assert_unrelated_to_cors(response: &Response) {
    let names = response.header_names();
    assert!(
        !names.iter().any(|name| name.starts_with("access-control-")),
        "{response:?}"
    );
    assert!(
        !response
            .items("Vary")
            .iter()
            .any(|name| VARY.contains(&name.as_str())),
        "{response:?}"
    );
}

/// Asserts which origin may read the response, and that caches keep it apart from others.
#[track_caller]
fn assert_readable(response: &Response, origin: Option<&str>) {
    response.assert_header("Access-Control-Allow-Origin", origin);
    response.assert_header("Access-Control-Allow-Credentials", None);
    let items = response.items("Vary");
    assert!(
        VARY.iter()
            .all(|name| items.iter().any(|item| item == name)),
        "{response:?}"
    );
}

/// The requests of [`requests_of_every_status`], and some that need preparation.
fn requests(app: &TestApp) -> Vec<(Request, u16)> {
    let keyed = |name| {
        app.request("POST", "/v1/pets")
            .header("Idempotency-Key", "order-1")
            .json(pet(name))
    };
    keyed("Rex").send().assert_status(201);
    let mut requests = requests_of_every_status(app);
    requests.extend([
        (keyed("Rex"), 201),
        (keyed("Tom"), 422),
        (app.anonymous("GET", "/"), 302),
    ]);
    requests
}

#[test]
fn every_response_is_readable_for_an_allowed_origin_and_for_no_other() {
    let app = app();
    for (origin, allowed) in [
        (Some(SHOP), Some(SHOP)),
        (Some(DEVELOPER), Some(DEVELOPER)),
        (Some(FOREIGN), None),
        (None, None),
    ] {
        for (request, status) in requests(&app) {
            let request = origin
                .into_iter()
                .fold(request, |request, origin| request.header("Origin", origin));
            assert_readable(request.send().assert_status(status), allowed);
        }
    }
    let list = app.request("GET", "/v1/pets").header("Origin", SHOP).send();
    assert_eq!(
        list.items("Vary"),
        [&["accept-encoding"], &VARY[..]].concat()
    );
}

#[test]
fn without_origins_no_response_has_cors_headers_and_a_preflight_is_an_ordinary_request() {
    let app = TestApp::start_with(&[("http.cors_origins", " , ,")]);
    for (request, status) in requests_of_every_status(&app) {
        assert_unrelated_to_cors(request.header("Origin", SHOP).send().assert_status(status));
    }
    for (path, status) in [("/v1/pets", 401), ("/v1/nowhere", 401), ("/docs", 405)] {
        assert_unrelated_to_cors(preflight(&app, path, SHOP).send().assert_status(status));
    }
}

#[test]
fn a_preflight_of_an_allowed_origin_needs_no_key_on_any_path() {
    let app = app();
    for path in [
        "/v1/pets?limit=0",
        "/v1/pets/no-id",
        "/v1/nowhere",
        "/docs",
        "/x/%FF",
    ] {
        let response = preflight(&app, path, SHOP)
            .header("Authorization", "Basic nonsense")
            .send();
        assert_readable(response.assert_status(200), Some(SHOP));
        response.assert_header("X-Content-Type-Options", Some("nosniff"));
        assert!(response.header("X-Request-Id").is_some(), "{response:?}");
        assert!(response.body.is_empty(), "{response:?}");
    }
}

#[test]
fn the_star_allows_every_origin_and_the_management_listener_none() {
    let app = TestApp::start_with(&[("http.cors_origins", "*")]);
    for origin in [SHOP, "null", "chrome-extension://abcdefgh"] {
        let anonymous = app
            .anonymous("GET", "/v1/pets")
            .header("Origin", origin)
            .send();
        for response in [preflight(&app, "/v1/pets", origin).send(), anonymous] {
            assert_readable(&response, Some("*"));
        }
    }
    for (method, path, status) in [
        ("GET", "/live", 200),
        ("GET", "/ready", 200),
        ("OPTIONS", "/live", 405),
        ("GET", "/nowhere", 404),
    ] {
        let request = app.management(method, path).header("Origin", SHOP);
        assert_unrelated_to_cors(
            request
                .header("Access-Control-Request-Method", "GET")
                .send()
                .assert_status(status),
        );
    }
}

#[test]
fn of_two_origins_only_the_first_counts() {
    let app = app();
    for (first, second, allowed) in [
        (SHOP, FOREIGN, Some(SHOP)),
        (FOREIGN, SHOP, None),
        ("null", SHOP, None),
    ] {
        for start in [
            "GET /v1/pets HTTP/1.1",
            "OPTIONS /v1/pets HTTP/1.1\r\nAccess-Control-Request-Method: GET",
        ] {
            let request = format!(
                "{start}\r\n{}Origin: {first}\r\nOrigin: {second}\r\n\r\n",
                fields()
            );
            assert_readable(app.send(request).response().assert_status(200), allowed);
        }
    }
}
