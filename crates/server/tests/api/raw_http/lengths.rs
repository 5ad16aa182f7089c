//! The end of a body: by one length or by chunks, never by a guess.

use crate::{
    raw_requests::{assert_no_pet, assert_refused, fields, pet, post, post_head},
    test_app::TestApp,
};

#[test]
fn a_request_with_both_a_length_and_chunks_is_refused() {
    let app = TestApp::start();
    for lines in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
    ] {
        assert_refused(&app, post_head(lines) + "0\r\n\r\n", &[400]);
    }
}

#[test]
fn a_request_with_two_lengths_is_refused() {
    let app = TestApp::start();
    let body = pet("Rex");
    let right = body.len();
    for lines in [
        format!("Content-Length: {right}\r\nContent-Length: 0\r\n"),
        format!("Content-Length: 0\r\nContent-Length: {right}\r\n"),
        format!("Content-Length: {right}\r\nContent-Length: {right}\r\n"),
        format!("Content-Length: {right}, {right}\r\n"),
    ] {
        assert_refused(&app, post_head(&lines) + &body, &[400]);
    }
}

#[test]
fn a_length_that_is_not_plain_digits_is_refused() {
    let app = TestApp::start();
    let body = pet("Rex");
    let right = body.len();
    for length in [
        format!("-{right}"),
        format!("+{right}"),
        format!("0x{right:x}"),
        format!("{right}e0"),
        format!("{right} {right}"),
        "-0".to_owned(),
        "\u{662}".to_owned(),
        String::new(),
        // One more than the largest 64-bit number.
        "18446744073709551616".to_owned(),
    ] {
        assert_refused(&app, post_head(&format!("Content-Length: {length}\r\n")) + &body, &[400]);
    }
}

#[test]
fn a_length_above_the_bound_is_a_413_before_the_body_arrives() {
    let app = TestApp::start();
    for length in ["16385", "9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        let mut connection = app.send(post_head(&format!("Content-Length: {length}\r\n")) + &pet("Rex"));

        let response = connection.response();

        response.assert_error(413, "payload_too_large");
        assert!(response.closes(), "{response:?}");
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_transfer_encoding_other_than_chunked_is_refused() {
    let app = TestApp::start();
    for lines in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: chunked\0\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 5\r\n",
        "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n",
    ] {
        assert_refused(&app, post_head(lines) + "0\r\n\r\n", &[400]);
    }
}

#[test]
fn http_1_0_has_no_chunks_and_needs_a_length() {
    let app = TestApp::start();
    for lines in ["Transfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", ""] {
        let head = format!("POST /v1/pets HTTP/1.0\r\n{}Content-Type: application/json\r\n{lines}\r\n", fields());
        assert_refused(&app, head + "0\r\n\r\n", &[400]);
    }
}

#[test]
fn a_length_with_leading_zeros_or_spaces_counts_the_same_bytes() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let body = pet("Rex");

    for length in [format!("000{}", body.len()), format!(" \t {} \t", body.len())] {
        connection.send(post_head(&format!("Content-Length: {length}\r\n")) + &body + &post("Ada"));
        connection.response().assert_status(201);
        assert_eq!(connection.response().json()["name"], "Ada");
    }
}
