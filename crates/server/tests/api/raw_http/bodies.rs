//! Bodies of requests that need none, and protocols that the service does not speak.

use std::time::Duration;

use crate::{
    raw_requests::{
        assert_no_pet, assert_nothing_smuggled, fields, get, names, pet, post, post_head, smuggled, statuses,
        with_lines,
    },
    test_app::TestApp,
};

/// A request whose body is itself a request, with more header lines.
fn with_a_request_as_body(method: &str, lines: &str) -> String {
    let body = smuggled();
    format!("{method} /v1/pets/0 HTTP/1.1\r\n{}{lines}Content-Length: {}\r\n\r\n{body}", fields(), body.len())
}

#[test]
fn the_body_of_a_request_that_needs_none_is_not_a_request() {
    let app = TestApp::start();
    for method in ["GET", "HEAD", "PUT", "OPTIONS", "X-UNKNOWN"] {
        let mut connection = app.send(with_a_request_as_body(method, ""));
        let first = if method == "HEAD" { connection.response_to_head() } else { connection.response() };
        assert!(matches!(first.status, 404 | 405), "{method}: {first:?}");
        assert_nothing_smuggled(&app, &mut connection, &first);
    }
    let (head, body) = (with_lines(&get("/v1/pets/0"), "Transfer-Encoding: chunked\r\n"), smuggled());
    let mut connection = app.send(format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()));
    let response = connection.response();
    response.assert_error(404, "pet_not_found");
    assert_nothing_smuggled(&app, &mut connection, &response);
}

#[test]
fn an_undeclared_body_is_the_next_request() {
    let app = TestApp::start();

    let mut connection = app.send(post_head("") + &pet("Rex"));

    connection.response().assert_error(400, "invalid_body");
    assert_eq!(statuses(&connection.responses_to_end()), [400]);
    assert_no_pet(&app);
}

#[test]
fn a_truncated_body_is_a_400_and_creates_nothing() {
    let app = TestApp::start();
    let body = pet("Rex");
    // The bytes are a complete pet: only the framing shows that some are missing.
    for start in [
        post_head(&format!("Content-Length: {}\r\n", body.len() + 1)) + &body,
        post_head("Transfer-Encoding: chunked\r\n") + &format!("{:x}\r\n{body}\r\n", body.len()),
        post_head("Transfer-Encoding: chunked\r\n") + &format!("{:x}\r\n{body}\r\n0\r\n", body.len()),
    ] {
        let mut connection = app.send(start);
        connection.finish_sending();
        let responses = connection.responses_to_end();
        assert_eq!(responses.len(), 1, "{responses:?}");
        responses[0].assert_error(400, "malformed_request");
        assert_no_pet(&app);
    }
}

#[test]
fn an_upgrade_to_websocket_is_ignored() {
    let app = TestApp::start_limited(&[], |limits| limits.body_timeout = Duration::from_secs(4));
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";

    app.send(with_lines(&get("/v1/pets/0"), upgrade)).response().assert_error(404, "pet_not_found");
    // A body still ends after its declared length.
    app.send(with_lines(&post("Rex"), upgrade)).response().assert_status(201);
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn the_body_of_a_get_with_an_upgrade_to_websocket_is_not_a_request() {
    let app = TestApp::start();

    let mut connection = app.send(with_a_request_as_body("GET", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    connection.finish_sending();

    let responses = connection.responses_to_end();
    assert_eq!(responses.len(), 1, "{responses:?}");
    responses[0].assert_error(404, "pet_not_found");
    assert_no_pet(&app);
}

#[test]
fn a_connection_can_be_used_after_an_upgrade_to_http_2() {
    // Java's client sends this upgrade with each first request, and the next request on the same connection.
    let app = TestApp::start();
    let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQBAAAA\r\n";

    let mut connection = app.send(with_lines(&post("Ada"), upgrade));

    let response = connection.response();
    response.assert_status(201);
    if response.closes() {
        connection.assert_closed();
    } else {
        connection.send(post("Ben"));
        connection.response().assert_status(201);
    }
}

#[test]
fn what_follows_a_connect_is_not_a_request() {
    let app = TestApp::start();
    let mut connection = app.send(format!("CONNECT store.example:80 HTTP/1.1\r\n{}\r\n{}", fields(), smuggled()));
    connection.finish_sending();

    let responses = connection.responses_to_end();
    assert!(responses.len() == 1 && responses[0].closes(), "{responses:?}");
    assert_no_pet(&app);
}
