//! The management listener, which has other routes than that of the API.

use crate::prelude::*;

const PATHS: [&str; 3] = ["/live", "/ready", "/metrics"];

#[test]
fn a_running_service_is_live_and_ready_without_a_key() {
    let app = TestApp::start();
    for path in PATHS {
        let response = app
            .management("GET", &format!("{path}?x=1"))
            .header("Authorization", "Bearer unknown")
            .send();
        response
            .assert_status(200)
            .assert_header("WWW-Authenticate", None);
        assert!(response.header("X-Request-Id").is_some(), "{response:?}");
    }
    for path in ["/live", "/ready"] {
        let get = app.management("GET", path);
        let get = get.header("X-Request-Id", "Abc.123").send();
        get.assert_header("X-Request-Id", Some("Abc.123"))
            .assert_header("Content-Type", Some("application/json"));
        app.management("HEAD", path).send().assert_head_of(&get);
    }
}

#[test]
fn an_unknown_path_is_a_404_and_any_method_but_get_and_head_a_405() {
    let app = TestApp::start();
    for path in ["/", "/live/", "/Live", "/v1/live", "//live"] {
        app.management("GET", path)
            .send()
            .assert_error(404, "route_not_found");
    }
    for (method, path) in [
        ("POST", "/live"),
        ("OPTIONS", "/ready"),
        ("get", "/metrics"),
    ] {
        let response = app.management(method, path).send();
        response
            .assert_header("Allow", Some("GET, HEAD"))
            .assert_error(405, "method_not_allowed");
    }
}

#[test]
fn neither_listener_serves_the_routes_of_the_other() {
    let app = TestApp::start();
    let pet = app.create_pet();
    for request in [
        app.management("GET", "/v1/pets"),
        app.management("GET", &pet),
        app.management("GET", "/openapi.json"),
        app.management("POST", "/v1/pets"),
    ] {
        let response = request
            .header("Authorization", &format!("Bearer {TOKEN}"))
            .json(PET)
            .send();
        response
            .assert_header("Deprecation", None)
            .assert_error(404, "route_not_found");
    }
    assert_eq!(app.get("/v1/pets").ids().len(), 1);
    for path in PATHS {
        app.anonymous("GET", path)
            .send()
            .assert_error(404, "route_not_found");
        app.get(&format!("/v1{path}"))
            .assert_error(404, "route_not_found");
    }
}

#[test]
fn its_timeouts_are_seconds_however_long_those_of_the_api_are() {
    let app = TestApp::start_changed(&[], |config| {
        config.http.connections.head_timeout = 2 * RawConnection::TIMEOUT;
    });
    RawConnection::open(app.management_address)
        .response()
        .assert_status(408);
}

#[test]
fn metrics_on_a_loopback_address_are_a_421_without_a_body_for_the_name_of_another_machine() {
    let app = TestApp::start();
    for (path, host, status) in [
        ("/metrics", "localhost", 200),
        ("/metrics", "store.example", 421),
        ("/live", "store.example", 200),
    ] {
        let mut connection = RawConnection::open(app.management_address);
        connection.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let response = connection.response();
        response.assert_status(status);
        assert_eq!(response.text().is_empty(), status == 421, "{response:?}");
    }
}
