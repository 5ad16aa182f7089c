//! Heads that are too long, have too many headers, or are not HTTP.

use serde_json::json;

use crate::{
    raw_requests::{assert_refused, fields, get, post, post_head},
    test_app::TestApp,
};

/// Between 128 and 256 KiB, the segmentation of the bytes decides whether a head is too long.
const TOO_LONG: usize = 300 * 1024;

#[test]
fn a_head_may_come_a_byte_at_a_time() {
    let app = TestApp::start();
    let mut connection = app.connect();

    for _ in 0..2 {
        for byte in post("Rex").as_bytes() {
            connection.send([*byte]);
        }
        connection.response().assert_status(201);
    }
}

#[test]
fn a_request_needs_exactly_one_host() {
    let app = TestApp::start();
    let authorization = fields().lines().nth(1).expect("two lines").to_owned();
    for hosts in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n", "Host: a\r\nhost: b\r\n"] {
        assert_refused(&app, format!("GET /v1/pets HTTP/1.1\r\n{hosts}{authorization}\r\n\r\n"), &[400]);
    }
}

#[test]
fn ten_thousand_headers_are_refused() {
    let app = TestApp::start();
    let headers: Vec<_> = (0..10_000).map(|number| format!("X-{number}: x\r\n")).collect();

    assert_refused(&app, post_head(&headers.concat()), &[400, 431]);
}

#[test]
fn a_head_of_300_kib_is_refused() {
    let app = TestApp::start();
    let long = "x".repeat(TOO_LONG);

    assert_refused(&app, post_head(&format!("X-Long: {long}\r\n")), &[431]);
    assert_refused(&app, post_head(&format!("{long}: x\r\n")), &[400, 431]);
    assert_refused(&app, get(&format!("/v1/pets?limit={long}")), &[414]);
    assert_refused(&app, format!("{long} /v1/pets HTTP/1.1\r\n{}\r\n", fields()), &[400, 414]);
}

#[test]
fn a_target_has_at_most_8_kib() {
    let app = TestApp::start();
    let target = |bytes: usize| format!("/v1/pets?{}", "x".repeat(bytes - "/v1/pets?".len()));

    let mut connection = app.send(get(&target(8 * 1024)));
    connection.response().assert_status(200);

    for bytes in [8 * 1024 + 1, 20_000, 100_000] {
        assert_refused(&app, get(&target(bytes)), &[414]);
    }
}

#[test]
fn an_invalid_host_is_refused() {
    let app = TestApp::start();
    for host in ["store example", "store/example", "user@store", "store:http"] {
        assert_refused(&app, get("/v1/pets").replacen("store.example", host, 1), &[400]);
    }
}

#[test]
fn forbidden_characters_in_a_header_are_refused() {
    let app = TestApp::start();
    for line in [
        "X-Nul: a\0b\r\n",
        "X-\0Nul: a\r\n",
        "X-Bell: a\x07b\r\n",
        "X-Return: a\rb\r\n",
        "X Space: a\r\n",
        "X-Space : a\r\n",
        "No-Colon\r\n",
        ": no name\r\n",
        // A line that continues the previous one (obs-fold).
        "X-Folded: a\r\n b\r\n",
        "X-Folded: a\r\n Content-Length: 5\r\n",
    ] {
        assert_refused(&app, post_head(line), &[400]);
    }
}

#[test]
fn a_first_line_that_is_not_http_is_refused() {
    let app = TestApp::start();
    for line in [
        "GET /v1/pets HTTP/1.1 x",
        "GET  /v1/pets HTTP/1.1",
        "GET\t/v1/pets\tHTTP/1.1",
        " GET /v1/pets HTTP/1.1",
        "GET /v1/\0pets HTTP/1.1",
        "G{T /v1/pets HTTP/1.1",
        "GET /v1/pets",
        "GET",
        "HTTP/1.1 200 OK",
    ] {
        assert_refused(&app, format!("{line}\r\n{}\r\n", fields()), &[400]);
    }
}

#[test]
fn bytes_that_are_not_http_are_refused() {
    let app = TestApp::start();
    let garbage: Vec<u8> = (0..=255).cycle().skip(128).take(4096).collect();
    // The start of a TLS handshake.
    let client_hello = [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &[0x5a; 256]].concat();
    for bytes in [garbage, client_hello, b"\xff".repeat(1024), b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()] {
        assert_refused(&app, bytes, &[400]);
    }
}

#[test]
fn lines_that_end_in_a_bare_line_feed_are_one_request() {
    // RFC 9112, section 2.2, allows them; no part may become a second request.
    let app = TestApp::start();
    let mut connection = app.send(get("/v1/pets/0").replace("\r\n", "\n") + &get("/v1/pets"));

    connection.response().assert_error(404, "pet_not_found");
    assert_eq!(connection.response().json(), json!([]));
}

#[test]
fn sixty_headers_of_500_bytes_are_accepted() {
    let app = TestApp::start();
    let mut connection = app.connect();
    let headers: Vec<_> = (0..60).map(|number| format!("X-{number}: {}\r\n", "x".repeat(500))).collect();

    connection.send(get("/v1/pets").replacen("\r\n", &format!("\r\n{}", headers.concat()), 1));

    connection.response().assert_status(200);
}
