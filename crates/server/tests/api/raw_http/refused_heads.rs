//! Heads that are refused: one response, the end of the connection, and no request after it is carried out.

use crate::prelude::*;

#[track_caller]
fn assert_all_refused<Bytes: AsRef<[u8]>>(requests: impl IntoIterator<Item = Bytes>) {
    let app = TestApp::start();
    for request in requests {
        let _ = assert_refused(&app, request, 400);
    }
}

#[test]
fn a_length_that_is_ambiguous_or_not_plain_digits_is_refused() {
    let body = pet("Rex");
    let right = body.len();
    let lengths = [
        format!("{right}\r\nContent-Length: 0"),
        format!("0\r\nContent-Length: {right}"),
        format!("{right}\r\nContent-Length: {right}"),
        format!("{right}, {right}"),
        format!("{right} {right}"),
        format!("-{right}"),
        format!("+{right}"),
        format!("0x{right:x}"),
        format!("{right}e0"),
    ];
    // The last one is one more than the largest 64-bit number.
    let others = ["-0", "\u{662}", "", "18446744073709551616"].map(str::to_owned);
    let head = |length| post_head(&format!("Content-Length: {length}\r\n")) + &body;
    assert_all_refused(lengths.into_iter().chain(others).map(head));
}

#[test]
fn a_body_with_another_end_than_a_length_or_chunks_is_refused() {
    let http_1_1 = [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
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
    ];
    // HTTP/1.0 has no chunks, and a POST needs a length.
    let http_1_0 = [
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "",
    ];
    let http_1_0 = http_1_0.map(|lines| post_head(lines).replacen("HTTP/1.1", "HTTP/1.0", 1));
    let requests = http_1_1.into_iter().map(post_head).chain(http_1_0);
    assert_all_refused(requests.map(|head| head + "0\r\n\r\n"));
}

#[test]
fn a_first_line_that_is_not_http_1_is_refused() {
    let versions =
        "HTTP/0.9 HTTP/1.2 HTTP/2.0 HTTP/3 HTTP/1.1.1 HTTP/11 http/1.1 HTTP/-1 x".split(' ');
    let lines = [
        "GET /v1/pets HTTP/1.1 x",
        "GET  /v1/pets HTTP/1.1",
        "GET\t/v1/pets\tHTTP/1.1",
        " GET /v1/pets HTTP/1.1",
        "GET /v1/\0pets HTTP/1.1",
        "G{T /v1/pets HTTP/1.1",
        "GET /v1/pets",
        "GET",
        "HTTP/1.1 200 OK",
        "PRI * HTTP/2.0",
    ];
    let versions = versions.map(|version| format!("GET /v1/pets {version}"));
    let lines = lines.map(str::to_owned).into_iter().chain(versions);
    assert_all_refused(lines.map(|line| format!("{line}\r\n{}\r\n", fields())));
}

#[test]
fn bytes_that_are_not_http_are_refused() {
    let garbage: Vec<u8> = (0..=255).cycle().skip(128).take(4096).collect();
    // The start of a TLS handshake.
    let client_hello = [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        &[0x5a; 256],
    ]
    .concat();
    assert_all_refused([
        garbage,
        client_hello,
        b"\xff".repeat(1024),
        b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
    ]);
}

#[test]
fn forbidden_characters_in_a_field_are_refused() {
    assert_all_refused(
        [
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
        ]
        .map(post_head),
    );
}

#[test]
fn a_request_needs_exactly_one_valid_host() {
    let hosts = [
        "",
        "Host: a\r\nHost: a\r\n",
        "Host: a\r\nHost: b\r\n",
        "Host: a\r\nhost: b\r\n",
        "Host: store example\r\n",
        "Host: user@store\r\n",
    ];
    let request = get("/v1/pets");
    assert_all_refused(hosts.map(|lines| request.replacen("Host: store.example\r\n", lines, 1)));
}

#[test]
fn a_target_has_at_most_8_kib_and_a_head_at_most_32() {
    let app = TestApp::start();
    let list = get("/v1/pets");
    let target = |bytes: usize| get(&format!("{:x<bytes$}", "/v1/pets?"));
    let head = |bytes: usize| {
        let padding = "x".repeat(bytes - list.len() - "X: \r\n".len());
        with_lines(&list, &format!("X: {padding}\r\n"))
    };

    for accepted in [target(8 * 1024), head(32 * 1024)] {
        app.send(accepted).response().assert_status(200);
    }
    let long = "x".repeat(300 * 1024);
    let headers: Vec<_> = (0..10_000)
        .map(|number| format!("X-{number}: x\r\n"))
        .collect();
    for (refused, status) in [
        (target(8 * 1024 + 1), 414),
        (get(&long), 414),
        (format!("{long} /v1/pets HTTP/1.1\r\n{}\r\n", fields()), 501),
        (head(32 * 1024 + 1), 431),
        (post_head(&format!("X-Long: {long}\r\n")), 431),
        (post_head(&headers.concat()), 431),
    ] {
        let _ = assert_refused(&app, refused, status);
    }
}

#[test]
fn a_line_that_ends_in_a_lone_line_feed_is_refused() {
    let request = get("/v1/pets");
    let lines = request.matches("\r\n").count();
    let bare = |index: usize| {
        let mut parts: Vec<_> = request.split("\r\n").collect();
        let line = format!("{}\n{}", parts[index], parts[index + 1]);
        parts.splice(index..index + 2, [line.as_str()]);
        parts.join("\r\n")
    };
    let requests = (0..lines).map(bare).chain([request.replace("\r\n", "\n")]);
    assert_all_refused(requests);
}
