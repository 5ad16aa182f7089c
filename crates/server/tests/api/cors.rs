//! Cross-origin requests: refused by default, allowed for the origins in `http.cors_origins`.
//!
//! The unit tests of `Origin` cover the valid and invalid origins.

mod preflights;
mod responses;

use animal_store_test_servers::{Request, Response};

use crate::{headers::requests_of_every_status, test_app::TestApp};

/// An allowed origin.
const SHOP: &str = "https://shop.example";
/// Another allowed origin.
const DEVELOPER: &str = "http://localhost:3000";
const FOREIGN: &str = "https://evil.example";

/// The items of `Vary` on every response, once any origin is allowed.
const VARY: [&str; 3] = ["access-control-request-headers", "access-control-request-method", "origin"];

/// An application that allows [`SHOP`] and [`DEVELOPER`].
fn app() -> TestApp {
    app_for(&format!("{SHOP}, {DEVELOPER}"))
}

fn app_for(origins: &str) -> TestApp {
    TestApp::start_with(&[("http.cors_origins", origins)])
}

/// The preflight of a browser before a GET with an API key.
fn preflight(app: &TestApp, path: &str, origin: &str) -> Request {
    let request = app.anonymous("OPTIONS", path).header("Origin", origin);
    request.header("Access-Control-Request-Method", "GET").header("Access-Control-Request-Headers", "authorization")
}

#[track_caller]
fn assert_no_cors_headers(response: &Response) {
    assert!(!response.header_names().iter().any(|name| name.starts_with("access-control-")), "{response:?}");
}

/// Asserts that the response has no CORS headers and does not vary by the origin.
#[track_caller]
fn assert_unrelated_to_cors(response: &Response) {
    assert_no_cors_headers(response);
    assert!(!response.items("Vary").iter().any(|name| VARY.contains(&name.as_str())), "{response:?}");
}

#[test]
fn no_response_has_cors_headers_by_default() {
    let app = TestApp::start();

    for (request, status) in requests_of_every_status(&app) {
        assert_unrelated_to_cors(request.header("Origin", SHOP).send().assert_status(status));
    }
}

#[test]
fn a_preflight_is_an_ordinary_request_by_default() {
    let app = app_for(" , ,");

    for path in ["/v1/pets", "/v1/pets/1", "/v1/nowhere"] {
        let response = preflight(&app, path, SHOP).send();
        response.assert_error(401, "missing_api_key");
        assert_unrelated_to_cors(&response);
    }
    for (path, status, code) in [
        ("/v1/pets", 405, "method_not_allowed"),
        ("/v1/nowhere", 404, "route_not_found"),
        ("/docs", 405, "method_not_allowed"),
    ] {
        let response = preflight(&app, path, SHOP).header("Authorization", "Bearer test-token-1").send();
        response.assert_error(status, code);
        assert_unrelated_to_cors(&response);
    }
}

#[test]
fn the_management_listener_never_sends_cors_headers() {
    let app = app_for("*");

    for (method, path, status) in
        [("GET", "/live", 200), ("GET", "/ready", 200), ("OPTIONS", "/live", 405), ("GET", "/nowhere", 404)]
    {
        let request = app.management(method, path).header("Origin", SHOP);
        assert_unrelated_to_cors(request.header("Access-Control-Request-Method", "GET").send().assert_status(status));
    }
}

/// Origins that are not allowed: origins are compared byte by byte.
const OTHERS: [&str; 12] = [
    "",
    "*",
    "null",
    "http://shop.example",
    "https://shop.example/",
    "https://shop.example:443",
    "https://shop.example.evil.example",
    "https://shop.exampl",
    "https://evil-shop.example",
    "https://shop.example@evil.example",
    "https://shop.example, http://localhost:3000",
    "https://SHOP.example",
];

#[test]
fn an_origin_that_resembles_an_allowed_one_is_not_allowed() {
    let app = app();

    for origin in OTHERS {
        for request in [app.request("GET", "/v1/pets").header("Origin", origin), preflight(&app, "/v1/pets", origin)] {
            let response = request.send();
            response.assert_status(200).assert_header("Access-Control-Allow-Origin", None);
            response.assert_header("Access-Control-Allow-Methods", None);
            response.assert_header("Access-Control-Allow-Credentials", None);
        }
    }
}

#[test]
fn the_star_allows_every_origin() {
    let app = app_for("*");

    for origin in [SHOP, FOREIGN, "null"] {
        let response = app.request("GET", "/v1/pets").header("Origin", origin).send();
        response.assert_status(200).assert_header("Access-Control-Allow-Origin", Some("*"));
        response.assert_header("Access-Control-Allow-Credentials", None);
        let anonymous = app.anonymous("GET", "/v1/pets").header("Origin", origin).send();
        anonymous.assert_header("Access-Control-Allow-Origin", Some("*")).assert_error(401, "missing_api_key");
    }
}
