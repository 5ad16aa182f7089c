//! Where a body ends: after its length or its last chunk, and never later or earlier.

use crate::prelude::*;

fn chunked(body: &str) -> String {
    post_head("Transfer-Encoding: chunked\r\n") + body
}

#[test]
fn the_body_of_a_request_that_needs_none_is_not_a_request() {
    let app = TestApp::start();
    let body = smuggled();
    let framings = [
        (format!("Content-Length: {}\r\n", body.len()), body.clone()),
        (
            "Transfer-Encoding: chunked\r\n".to_owned(),
            format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
        ),
    ];
    for (lines, body) in framings {
        for (method, status) in [
            ("GET", 404),
            ("HEAD", 404),
            ("PUT", 405),
            ("OPTIONS", 405),
            ("X-UNKNOWN", 405),
        ] {
            let head = with_lines(&get("/v1/pets/0"), &lines).replacen("GET", method, 1);
            let mut connection = app.send(head + &body);
            response_to(method, &mut connection).assert_status(status);
            assert_goes_on(&mut connection);
        }
    }
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
fn a_length_with_leading_zeros_or_spaces_counts_the_same_bytes() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");
    for length in [
        format!("000{}", body.len()),
        format!(" \t {} \t", body.len()),
    ] {
        connection.send(post_head(&format!("Content-Length: {length}\r\n")) + &body + &post("Ada"));
        connection.response().assert_status(201);
        assert_eq!(connection.response().json()["name"], "Ada");
    }
}

#[test]
fn a_body_above_the_bound_is_a_413_before_its_end_and_ends_the_connection() {
    let app = TestApp::start();
    let lengths = "16385 9223372036854775807 9223372036854775808 18446744073709551615";
    for length in lengths.split(' ') {
        let head = post_head(&format!("Content-Length: {length}\r\n"));
        let mut connection = app.send(head + &pet("Rex"));
        let response = connection.response();
        assert_ends(&mut connection, response.assert_status(413));
    }
    let largest_chunk = chunked("ffffffffffffffff\r\n") + &" ".repeat(17 * 1024);
    assert_refused(&app, largest_chunk, 413).assert_error(413, "payload_too_large");
    assert_no_pet(&app);
}

/// The unit tests of `http1/src/framing` cover the grammar.
#[test]
fn an_invalid_chunk_is_a_400_and_ends_the_connection() {
    let app = TestApp::start();
    let body = pet("Rex");
    let invalid = chunked(&format!("{:x}\r\n{body}\r\n0\r\n\n", body.len()));
    assert_refused(&app, invalid, 400).assert_error(400, "malformed_request");
    // Neither needs an API key, and the second one is not a trailer of the first.
    let hidden = get("/v1/pets").replacen("GET", "POST", 1);
    let open = "POST /docs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n";
    assert_refused(&app, format!("{open}{hidden}"), 405).assert_error(405, "method_not_allowed");
    let unknown_key = chunked("3\r\nabc\r\nzz\r\n").replacen("Bearer ", "Bearer un", 1);
    assert_refused(&app, unknown_key, 401).assert_error(401, "invalid_api_key");
}
