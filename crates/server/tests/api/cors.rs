//! Pages of other origins: none may use the interface unless the configuration says so.

mod answers;
mod origins;
mod preflights;

use crate::{
    client::{Request, Response},
    headers::everywhere,
    test_app::TestApp,
};

/// An origin that is allowed.
const SHOP: &str = "https://shop.example";
/// Another one.
const DEVELOPER: &str = "http://localhost:3000";
const FOREIGN: &str = "https://evil.example";

/// What an answer depends on, once any origin is allowed.
const VARIES: [&str; 3] = ["access-control-request-headers", "access-control-request-method", "origin"];

/// With both origins allowed.
fn app() -> TestApp {
    app_for(&format!("{SHOP}, {DEVELOPER}"))
}

fn app_for(origins: &str) -> TestApp {
    TestApp::start_with(&[("http.cors_origins", origins)])
}

/// What a browser asks before it sends a GET with an API key to this path.
fn preflight(app: &TestApp, path: &str, origin: &str) -> Request {
    let request = app.anonymous("OPTIONS", path).header("Origin", origin);
    request.header("Access-Control-Request-Method", "GET").header("Access-Control-Request-Headers", "authorization")
}

/// It says nothing of origins, not even that it depends on them.
#[track_caller]
fn assert_silent(response: &Response) {
    let names = response.header_names();
    assert!(!names.iter().any(|name| name.starts_with("access-control-")), "{response:?}");
    assert!(!response.items("Vary").iter().any(|name| VARIES.contains(&name.as_str())), "{response:?}");
}

#[test]
fn no_answer_says_anything_of_origins_by_default() {
    let app = TestApp::start();

    for (request, status) in everywhere(&app) {
        assert_silent(request.header("Origin", SHOP).send().assert_status(status));
    }
}

#[test]
fn a_preflight_is_a_request_like_any_other_by_default() {
    for origins in ["", " ", ",", " , ,"] {
        let app = app_for(origins);
        let with_key = |path| preflight(&app, path, SHOP).header("Authorization", "Bearer test-token-1").send();

        for path in ["/v1/pets", "/v1/pets/1", "/v1/nowhere"] {
            let response = preflight(&app, path, SHOP).send();
            response.assert_error(401, "missing_api_key");
            assert_silent(&response);
        }
        for (path, status, code) in [
            ("/v1/pets", 405, "method_not_allowed"),
            ("/v1/pets/1", 405, "method_not_allowed"),
            ("/v1/nowhere", 404, "route_not_found"),
            ("/nowhere", 404, "route_not_found"),
            ("/docs", 405, "method_not_allowed"),
            ("/docs/explorer.js", 405, "method_not_allowed"),
            ("/openapi.json", 405, "method_not_allowed"),
            ("/", 405, "method_not_allowed"),
        ] {
            let response = with_key(path);
            response.assert_error(status, code);
            assert_silent(&response);
        }
    }
}

#[test]
fn operators_are_answered_without_a_word_on_origins() {
    let app = app_for("*");

    for (method, path, status) in
        [("GET", "/live", 200), ("GET", "/ready", 200), ("OPTIONS", "/live", 405), ("GET", "/nowhere", 404)]
    {
        let request = app.management(method, path).header("Origin", SHOP);
        assert_silent(request.header("Access-Control-Request-Method", "GET").send().assert_status(status));
    }
}
