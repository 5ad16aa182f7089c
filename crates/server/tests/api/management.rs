//! The management listener.

use animal_store_test_servers::Response;

use crate::test_app::{PET, TOKEN, TestApp};

const PATHS: [&str; 3] = ["/live", "/ready", "/metrics"];

#[track_caller]
fn manage(app: &TestApp, method: &str, path: &str) -> Response {
    app.management(method, path).send()
}

#[test]
fn a_running_service_is_live_and_ready_without_a_key() {
    let app = TestApp::start();

    for path in PATHS {
        let response = manage(&app, "GET", path);
        let content_type =
            if path == "/metrics" { "text/plain; version=0.0.4; charset=utf-8" } else { "application/json" };
        response.assert_status(200).assert_header("Content-Type", Some(content_type));
        response.assert_header("WWW-Authenticate", None);
        app.management("GET", path).header("Authorization", "Bearer unknown").send().assert_status(200);
        manage(&app, "GET", &format!("{path}?x=1")).assert_status(200);
    }
}

#[test]
fn head_is_get_without_its_body() {
    let app = TestApp::start();

    for path in ["/live", "/ready", "/nowhere"] {
        manage(&app, "HEAD", path).assert_head_of(&manage(&app, "GET", path));
    }
}

#[test]
fn an_unknown_path_is_a_404_with_the_error_body() {
    let app = TestApp::start();

    for path in ["/", "/live/", "/Live", "/v1/live", "//live"] {
        for method in ["GET", "POST", "OPTIONS"] {
            manage(&app, method, path).assert_error(404, "route_not_found");
        }
    }
}

#[test]
fn any_method_but_get_and_head_is_a_405() {
    let app = TestApp::start();

    for path in PATHS {
        for method in ["POST", "OPTIONS", "get"] {
            let response = manage(&app, method, path);
            response.assert_error(405, "method_not_allowed");
            assert_eq!(response.items("Allow"), ["get", "head"]);
        }
    }
}

#[test]
fn the_api_is_not_served_by_the_management_listener() {
    let app = TestApp::start();
    let id = app.create_pet(None);

    for path in ["/v1/pets", &format!("/v1/pets/{id}"), "/v1/nowhere"] {
        let request = app.management("GET", path).header("Authorization", &format!("Bearer {TOKEN}"));
        request.send().assert_header("Deprecation", None).assert_error(404, "route_not_found");
    }
    let request = app.management("POST", "/v1/pets").header("Authorization", &format!("Bearer {TOKEN}"));
    request.json(PET).send().assert_error(404, "route_not_found");
    assert_eq!(app.get("/v1/pets").ids(), [id]);
}

#[test]
fn health_is_not_served_by_the_api_listener() {
    let app = TestApp::start();

    for path in PATHS {
        app.anonymous("GET", path).send().assert_error(404, "route_not_found");
        app.get(path).assert_error(404, "route_not_found");
        app.get(&format!("/v1{path}")).assert_error(404, "route_not_found");
    }
}

#[test]
fn every_response_has_a_request_id() {
    let app = TestApp::start();

    for (method, path, status) in [("GET", "/live", 200), ("GET", "/nowhere", 404), ("DELETE", "/live", 405)] {
        let response = app.management(method, path).header("X-Request-Id", "Abc.123").send();
        response.assert_status(status).assert_header("X-Request-Id", Some("Abc.123"));
        let generated = manage(&app, method, path);
        assert!(generated.header("X-Request-Id").is_some_and(|id| !id.is_empty()), "{generated:?}");
    }
}
