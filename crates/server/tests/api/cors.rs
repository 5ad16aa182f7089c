//! Cross-origin requests: refused by default, allowed for the origins in `http.cors_origins`.
//!
//! `crates/adapters-http/tests/http/cors.rs` covers the origins, methods and headers of preflights.

use crate::{headers::requests_of_every_status, prelude::*};

/// The allowed origins.
const SHOP: &str = "https://shop.example";
const DEVELOPER: &str = "http://localhost:3000";
const FOREIGN: &str = "https://evil.example";

/// The method of the request that a preflight precedes.
const OF_PAGE: &str = "Access-Control-Request-Method";

/// The items of `Vary` on every response, once any origin is allowed.
const VARY: &str = "access-control-request-method origin";

fn app() -> TestApp {
    TestApp::start_with(&[(
        "http.cors_origins",
        "https://shop.example, http://localhost:3000",
    )])
}

fn preflight(app: &TestApp, path: &str) -> Request {
    app.anonymous("OPTIONS", path).header(OF_PAGE, "GET")
}

/// Asserts that the response has no CORS headers and does not vary by the origin.
#[track_caller]
fn assert_unrelated_to_cors(response: &Response) {
    let mut names = response.header_names();
    names.extend(response.items("Vary"));
    let is_related = |name: &String| name.starts_with("access-control-") || name == "origin";
    assert!(!names.iter().any(is_related), "{response:?}");
}

/// Asserts which origin may read the response, and that caches keep it apart from others.
#[track_caller]
fn assert_readable(response: &Response, origin: Option<&str>) {
    response
        .assert_header("Access-Control-Allow-Origin", origin)
        .assert_header("Access-Control-Allow-Credentials", None);
    let items = response.items("Vary").join(" ");
    assert!(items.ends_with(VARY), "{response:?}");
}

/// The requests of [`requests_of_every_status`], and some that need preparation.
fn requests(app: &TestApp) -> Vec<(Request, u16)> {
    let keyed = |name| {
        let create = app.request("POST", "/v1/pets").json(pet(name));
        create.header("Idempotency-Key", "order-1")
    };
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
        (SHOP, Some(SHOP)),
        (DEVELOPER, Some(DEVELOPER)),
        (FOREIGN, None),
    ] {
        for (request, status) in requests(&app) {
            let response = request.header("Origin", origin).send();
            assert_readable(response.assert_status(status), allowed);
        }
    }
    for (request, status) in requests(&app) {
        assert_readable(request.send().assert_status(status), None);
    }
    let items = app.get("/v1/pets").items("Vary").join(" ");
    assert_eq!(items, format!("accept-encoding {VARY}"));
}

#[test]
fn without_origins_no_response_has_cors_headers_and_a_preflight_is_an_ordinary_request() {
    let app = TestApp::start_with(&[("http.cors_origins", " , ,")]);
    let preflights = [("/v1/pets", 401), ("/v1/nowhere", 401), ("/docs", 405)];
    let preflights = preflights.map(|(path, status)| (preflight(&app, path), status));
    for (request, status) in requests_of_every_status(&app).into_iter().chain(preflights) {
        let response = request.header("Origin", SHOP).send();
        assert_unrelated_to_cors(response.assert_status(status));
    }
}

#[test]
fn a_preflight_of_an_allowed_origin_needs_no_key_on_any_path() {
    let app = app();
    for path in "/v1/pets?limit=0 /v1/pets/no-id /v1/nowhere /docs /x/%FF".split(' ') {
        let request = preflight(&app, path).header("Origin", SHOP);
        let response = request.header("Authorization", "Basic nonsense").send();
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
        let list = app.anonymous("GET", "/v1/pets");
        for request in [preflight(&app, "/v1/pets"), list] {
            let response = request.header("Origin", origin).send();
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
        let response = request.header(OF_PAGE, "GET").send();
        assert_unrelated_to_cors(response.assert_status(status));
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
        for request in [app.request("GET", "/v1/pets"), preflight(&app, "/v1/pets")] {
            let request = request.header("Origin", first).header("Origin", second);
            assert_readable(request.send().assert_status(200), allowed);
        }
    }
}
