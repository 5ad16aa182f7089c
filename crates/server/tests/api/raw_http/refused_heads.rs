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
    let versions = versions.map(|version| format!("GET /v1/pets {version}"));
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
        "SSH-2.0-OpenSSH_9.2",
        // The start of a TLS handshake.
        "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03",
    ];
    let lines = lines.map(str::to_owned).into_iter().chain(versions);
    assert_all_refused(lines.map(|line| format!("{line}\r\n{}\r\n", fields())));
    let garbage: Vec<u8> = (0..=255).cycle().skip(128).take(4096).collect();
    assert_all_refused([garbage, b"\xff".repeat(1024)]);
}

/// The unit tests of `http1/src/heads` have the table of hosts, and each line that can end in a lone line feed.
#[test]
fn an_invalid_field_and_another_number_of_hosts_than_one_are_refused() {
    let fields = [
        "X-Nul: a\0b\r\n",
        "X-\0Nul: a\r\n",
        "X-Bell: a\x07b\r\n",
        "X-Return: a\rb\r\n",
        "X-Feed: a\n",
        "X Space: a\r\n",
        "X-Space : a\r\n",
        "No-Colon\r\n",
        ": no name\r\n",
        // A line that continues the previous one (obs-fold).
        "X-Folded: a\r\n b\r\n",
        "X-Folded: a\r\n Content-Length: 5\r\n",
        "Host: store.example\r\n",
        "host: b\r\n",
    ];
    let hosts = ["", "Host: store example\r\n"];
    let request = get("/v1/pets");
    let hosts = hosts.map(|lines| request.replacen("Host: store.example\r\n", lines, 1));
    assert_all_refused(fields.map(post_head).into_iter().chain(hosts));
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
    for (refused, status) in [
        (target(8 * 1024 + 1), 414),
        (get(&long), 414),
        (long.clone(), 501),
        (head(32 * 1024 + 1), 431),
        (post_head(&format!("X-Long: {long}\r\n")), 431),
        (post_head(&"X-Number: x\r\n".repeat(10_000)), 431),
    ] {
        let _ = assert_refused(&app, refused, status);
    }
}
