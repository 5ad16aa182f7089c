//! Protocols and versions that the service does not speak, and HTTP/1.0.

use crate::prelude::*;

const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
/// Java's client sends it with each first request.
const HTTP_2: &str =
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQBAAAA\r\n";

#[test]
fn a_websocket_is_ignored_and_its_connection_ends() {
    let app = TestApp::start();
    // A body still ends after its declared length.
    for (request, status) in [(get("/v1/pets/0"), 404), (post("Rex"), 201)] {
        let mut connection = app.send(with_lines(&request, WEBSOCKET));
        let response = connection.response();
        assert_ends(&mut connection, response.assert_status(status));
    }
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn another_upgrade_is_ignored_and_its_connection_goes_on() {
    let app = TestApp::start();
    let mut connection = app.connect();
    for upgrade in [
        HTTP_2,
        "Connection: upgrade\r\n",
        "Connection: keep-alive, Upgrade\r\n",
        "Connection: Upgrade, HTTP2-Settings, TE\r\n",
        "Upgrade: h2c\r\n",
        "Upgrade: websockets, h2c\r\nConnection: UPGRADE\r\n",
        "Upgrade: TLS/1.2, HTTP/1.1\r\nConnection: upgrade\r\nConnection: keep-alive\r\n",
    ] {
        for (request, status) in [(get("/v1/pets/0"), 404), (post("Rex"), 201)] {
            connection.send(with_lines(&request, upgrade));
            let response = connection.response();
            response
                .assert_status(status)
                .assert_header("Connection", None);
        }
    }
}

#[test]
fn what_follows_the_head_of_a_websocket_is_not_a_request() {
    let app = TestApp::start();
    let body = smuggled();
    let lines = format!("{WEBSOCKET}Content-Length: {}\r\n", body.len());
    let mut connection = app.send(with_lines(&get("/v1/pets/0"), &lines) + &body);
    let response = connection.response();
    assert_ends(&mut connection, response.assert_status(404));
}

/// A list in HTTP/1.0, which has no Host.
fn get_1_0(lines: &str) -> String {
    format!("GET /v1/pets HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n{lines}\r\n")
}

#[test]
fn a_connection_of_http_1_0_goes_on_if_the_client_requests_it() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let keep_alive = "Connection: keep-alive\r\n";
    let upgrade = "Connection: keep-alive, upgrade\r\nUpgrade: h2c\r\n";
    for lines in [keep_alive, keep_alive, upgrade, keep_alive] {
        connection.send(get_1_0(lines));
        connection
            .response()
            .assert_status(200)
            .assert_header("Connection", Some("keep-alive"));
    }
    // In the protocol of a websocket, the first request may end at another byte.
    for lines in [
        "",
        "Connection: upgrade\r\n",
        "Connection: keep-alive\r\nUpgrade: websocket\r\n",
    ] {
        let mut connection = app.send(get_1_0(lines) + &smuggled());
        connection.finish_sending();
        assert_eq!(statuses(&connection.responses_to_end()), [200]);
    }
    assert_no_pet(&app);
}
