//! Bodies where none is expected, and protocols that the service does not speak.

use crate::{
    raw_connection::RawConnection,
    raw_requests::{animal, assert_no_animal, fields, get, names, post, post_head, smuggled},
    test_app::TestApp,
};

/// A request whose body is itself a request, by the method and with these further lines.
fn with_a_request_as_body(method: &str, lines: &str) -> String {
    let body = smuggled();
    format!("{method} /v1/pets/0 HTTP/1.1\r\n{}{lines}Content-Length: {}\r\n\r\n{body}", fields(), body.len())
}

#[test]
fn the_body_of_a_request_that_needs_none_is_not_a_request() {
    let app = TestApp::start();
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "X-UNKNOWN"] {
        let mut connection = RawConnection::open(app.address);
        connection.send(with_a_request_as_body(method, ""));
        let first = if method == "HEAD" { connection.response_to_head() } else { connection.response() };
        assert!(matches!(first.status, 404 | 405), "{method}: {first:?}");
        if first.closes() {
            connection.finish_sending();
            connection.assert_closed();
        } else {
            connection.send(get("/v1/pets"));
            assert_eq!(connection.response().json(), serde_json::json!([]), "{method}");
        }
        assert_no_animal(&app);
    }
}

#[test]
fn the_chunked_body_of_a_get_is_not_a_request() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let body = smuggled();
    let head = get("/v1/pets/0").replacen("\r\n", "\r\nTransfer-Encoding: chunked\r\n", 1);

    connection.send(format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()));
    connection.response().assert_error(404, "pet_not_found");
    connection.send(get("/v1/pets"));

    assert_eq!(connection.response().json(), serde_json::json!([]));
    assert_no_animal(&app);
}

#[test]
fn a_body_that_nobody_declared_is_the_next_request() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(post_head("") + &animal("Rex"));

    connection.response().assert_error(400, "invalid_body");
    let rest: Vec<_> = connection.responses_to_end().iter().map(|response| response.status).collect();
    assert_eq!(rest, [400]);
    assert_no_animal(&app);
}

#[test]
fn a_body_that_is_cut_short_is_answered_400_and_adds_nothing() {
    let app = TestApp::start();
    let body = animal("Rex");
    // What came is a whole animal: only the framing says that something is missing.
    for start in [
        post_head(&format!("Content-Length: {}\r\n", body.len() + 1)) + &body,
        post_head("Transfer-Encoding: chunked\r\n") + &format!("{:x}\r\n{body}\r\n", body.len()),
        post_head("Transfer-Encoding: chunked\r\n") + &format!("{:x}\r\n{body}\r\n0\r\n", body.len()),
    ] {
        let mut connection = RawConnection::open(app.address);
        connection.send(start);
        connection.finish_sending();
        let responses = connection.responses_to_end();
        assert_eq!(responses.len(), 1, "{responses:?}");
        responses[0].assert_error(400, "malformed_request");
        assert_no_animal(&app);
    }
}

#[test]
fn an_upgrade_to_websocket_is_ignored() {
    let app = TestApp::start();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let mut connection = RawConnection::open(app.address);

    connection.send(get("/v1/pets/0").replacen("\r\n", &format!("\r\n{upgrade}"), 1));

    connection.response().assert_error(404, "pet_not_found");
}

#[test]
fn the_body_of_a_get_that_asks_for_websocket_is_not_a_request() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);

    connection.send(with_a_request_as_body("GET", "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    connection.finish_sending();

    let responses = connection.responses_to_end();
    assert_eq!(responses.len(), 1, "{responses:?}");
    responses[0].assert_error(404, "pet_not_found");
    assert_no_animal(&app);
}

#[test]
fn a_body_ends_where_its_length_says_even_where_websocket_is_asked_for() {
    let app = TestApp::start_with(&[("http.body_timeout", "500ms")]);
    let mut connection = RawConnection::open(app.address);

    connection.send(post("Rex").replacen("\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", 1));

    let response = connection.response();
    assert_eq!(response.status, 201, "{response:?}");
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn a_client_that_asks_for_http_2_knows_whether_its_connection_is_kept() {
    // Java's client asks for it with each first request, and sends the next on the same connection.
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQBAAAA\r\n";

    connection.send(post("Ada").replacen("\r\n", &format!("\r\n{upgrade}"), 1));
    let response = connection.response();

    assert_eq!(response.status, 201, "{response:?}");
    if response.closes() {
        connection.assert_closed();
    } else {
        connection.send(post("Ben"));
        assert_eq!(connection.response().status, 201);
    }
}
