//! Versions of HTTP other than 1.1.

use crate::{
    raw_requests::{assert_no_pet, assert_refused, fields, smuggled, statuses},
    test_app::TestApp,
};

fn get_1_0(connection: &str) -> String {
    // HTTP/1.0 has no Host.
    let authorization = fields().lines().nth(1).expect("two lines").to_owned();
    format!("GET /v1/pets HTTP/1.0\r\n{authorization}\r\n{connection}\r\n")
}

#[test]
fn a_connection_of_http_1_0_is_kept_if_the_client_requests_it() {
    let app = TestApp::start();
    let mut connection = app.connect();

    for _ in 0..3 {
        connection.send(get_1_0("Connection: keep-alive\r\n"));
        let response = connection.response();
        response.assert_status(200).assert_header("Connection", Some("keep-alive"));
    }
}

#[test]
fn a_request_after_one_of_http_1_0_is_not_carried_out() {
    // In the protocol of an upgrade, the first request may end at another byte.
    for connection in ["", "Connection: keep-alive\r\nUpgrade: websocket\r\n"] {
        let app = TestApp::start();
        let mut connection = app.send(get_1_0(connection) + &smuggled());
        connection.finish_sending();

        assert_eq!(statuses(&connection.responses_to_end()), [200]);
        assert_no_pet(&app);
    }
}

#[test]
fn other_versions_are_refused() {
    let app = TestApp::start();
    for version in ["HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3", "HTTP/1.1.1", "HTTP/11", "http/1.1", "HTTP/-1", "x"] {
        assert_refused(&app, format!("GET /v1/pets {version}\r\n{}\r\n", fields()), &[400]);
    }
    assert_refused(&app, "GET /v1/pets\r\n", &[400]);
    assert_refused(&app, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[400]);
}
