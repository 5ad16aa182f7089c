//! What operators ask, on a port of its own.

use crate::{client::Response, test_app::TestApp};

const PATHS: [&str; 2] = ["/live", "/ready"];

fn manage(app: &TestApp, method: &str, path: &str) -> Response {
    app.management(method, path).send()
}

#[test]
fn a_service_that_runs_is_live_and_ready_without_a_key() {
    let app = TestApp::start();

    for path in PATHS {
        manage(&app, "GET", path).assert_status(200).assert_header("WWW-Authenticate", None).json();
        let stranger = app.management("GET", path).header("Authorization", "Bearer unknown").send();
        stranger.assert_status(200);
        manage(&app, "GET", &format!("{path}?x=1")).assert_status(200);
    }
}

#[test]
fn head_says_what_get_says_without_a_body() {
    let app = TestApp::start();

    for path in ["/live", "/ready", "/nowhere"] {
        manage(&app, "HEAD", path).assert_head_of(&manage(&app, "GET", path));
    }
}

#[test]
fn a_path_that_leads_nowhere_is_a_404_with_the_error_body() {
    let app = TestApp::start();

    for path in ["/", "/nowhere", "/live/", "/live/x", "/Live", "/liveness", "/v1", "/v1/live", "//live"] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            manage(&app, method, path).assert_error(404, "route_not_found");
        }
    }
}

#[test]
fn any_method_but_get_and_head_is_a_405() {
    let app = TestApp::start();

    for path in PATHS {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"] {
            let response = manage(&app, method, path);
            response.assert_error(405, "method_not_allowed");
            let mut allowed: Vec<_> = response.header("Allow").expect("an Allow header").split(", ").collect();
            allowed.sort_unstable();
            assert_eq!(allowed, ["GET", "HEAD"]);
        }
    }
}

#[test]
fn clients_are_not_served_on_the_port_of_operators() {
    let app = TestApp::start();
    let id = app.add(None);

    for path in ["/v1/pets", &format!("/v1/pets/{id}"), "/v1/nowhere"] {
        let request = app.management("GET", path).header("Authorization", "Bearer test-token-1");
        let response = request.send();
        response.assert_header("Deprecation", None).assert_error(404, "route_not_found");
    }
    let request = app.management("POST", "/v1/pets").header("Authorization", "Bearer test-token-1");
    request.json(r#"{"name":"Rex","categoryId":7}"#).send().assert_error(404, "route_not_found");
    assert_eq!(app.get("/v1/pets").ids(), [id]);
}

#[test]
fn operators_are_not_served_on_the_port_of_clients() {
    let app = TestApp::start();

    for path in PATHS {
        app.anonymous("GET", path).send().assert_error(404, "route_not_found");
        app.get(path).assert_error(404, "route_not_found");
        app.get(&format!("/v1{path}")).assert_error(404, "route_not_found");
    }
}

#[test]
fn every_answer_to_an_operator_has_a_request_id() {
    let app = TestApp::start();

    for (path, status) in [("/live", 200), ("/ready", 200), ("/nowhere", 404)] {
        let response = app.management("GET", path).header("X-Request-Id", "Abc.123").send();
        response.assert_status(status).assert_header("X-Request-Id", Some("Abc.123"));
        let made = manage(&app, "GET", path);
        assert!(made.header("X-Request-Id").is_some_and(|id| !id.is_empty()), "{made:?}");
    }
    let response = app.management("DELETE", "/live").header("X-Request-Id", "Abc.123").send();
    response.assert_status(405).assert_header("X-Request-Id", Some("Abc.123"));
}
