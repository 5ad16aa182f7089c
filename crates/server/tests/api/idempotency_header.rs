//! The field `Idempotency-Key`: which values name a key, which of them the same one, and which are refused.

use std::iter;

use crate::{
    idempotency::{assert_added, assert_replay, keyed},
    raw_connection::{RawConnection, RawResponse},
    raw_requests::{animal, assert_no_animal, assert_refused, names, post_head},
    test_app::TestApp,
};

/// A create with these lines in its head, each with its line end.
fn send(app: &TestApp, lines: &[u8]) -> RawResponse {
    let body = animal("Rex");
    let mut head = post_head(&format!("Content-Length: {}\r\n", body.len())).into_bytes();
    head.splice(head.len() - 2.., lines.iter().copied().chain(*b"\r\n"));
    let mut connection = RawConnection::open(app.address);
    connection.send([&head, body.as_bytes()].concat());
    connection.response()
}

/// The same with one field of this value, byte for byte.
fn send_value(app: &TestApp, value: &[u8]) -> RawResponse {
    send(app, &[b"Idempotency-Key:", value, b"\r\n"].concat())
}

#[test]
fn a_bare_key_and_a_quoted_one_are_the_same() {
    let app = TestApp::start();
    let longest = "~".repeat(255);
    let pairs = [
        ("8e03978e-40d5-43e8-bc93-6894a57f9324", r#""8e03978e-40d5-43e8-bc93-6894a57f9324""#),
        (r#"a"b\c"#, r#""a\"b\\c""#),
        (r"\", r#""\\""#),
        ("a;b=1", r#""a;b=1""#),
        ("a,b", r#""a,b""#),
        (&longest, &format!("\"{longest}\"")),
    ];

    for (bare, quoted) in pairs {
        let first = keyed(&app, bare, animal("Rex")).send();
        assert_added(&first);
        assert_replay(&keyed(&app, quoted, animal("Rex")).send(), &first);
    }

    assert_eq!(names(&app).len(), pairs.len());
}

#[test]
fn white_space_around_a_value_is_no_part_of_it() {
    let app = TestApp::start();

    // RFC 9110, section 5.5.
    for value in [" a", "a", "a ", "  a  ", "\ta\t", " \t a\t ", " \"a\"", " \"a\" ", "\t\"a\" \t", "\"a\"\t"] {
        let response = send_value(&app, value.as_bytes());
        assert_eq!(response.status, 201, "{value:?}: {response:?}");
    }

    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn a_value_that_is_no_key_is_refused_and_adds_nothing() {
    let app = TestApp::start();
    let long = "x".repeat(256);
    let values = [
        "",
        " ",
        "\t",
        " a b",
        " a\tb",
        " a, b",
        &long,
        &format!("\"{long}\""),
        " \"\"",
        " \"",
        " \"a",
        " \"a b\"",
        " \"a\tb\"",
        " \"a\"b",
        " \"a\" b",
        " \"a\",",
        " \"a\", \"b\"",
        " \"a\\b\"",
        " \"a\\\"",
        " \"a\";b",
        " \"a\";b=1",
    ];
    // Visible, and not ASCII: as UTF-8, as half of it, as Latin-1, and quoted.
    let bytes: [&[u8]; 6] = [b" \xc3\xa9", b" a\xc3", b" \xe9", b" \"\xc3\xa9\"", b" \xff", b" a\x80"];

    for value in values.map(str::as_bytes).into_iter().chain(bytes) {
        let response = send_value(&app, value);
        assert_eq!(response.status, 400, "{:?}: {response:?}", String::from_utf8_lossy(value));
        response.assert_error(400, "invalid_header");
        let message = response.json()["message"].to_string();
        let rule = "must be sent once, as 1 to 255 visible ASCII characters, bare or quoted";
        assert_eq!(message, format!("\"Idempotency-Key {rule}\""));
    }

    assert_no_animal(&app);
}

#[test]
fn a_key_given_twice_is_refused_even_where_both_agree() {
    let app = TestApp::start();

    for (first, second) in [("a", "a"), ("a", "b"), ("a", ""), ("", "a"), ("\"a\"", "a")] {
        let lines = format!("Idempotency-Key: {first}\r\nIDEMPOTENCY-KEY: {second}\r\n");
        send(&app, lines.as_bytes()).assert_error(400, "invalid_header");
    }

    assert_no_animal(&app);
}

#[test]
fn control_characters_are_refused_before_anything_reads_them() {
    let app = TestApp::start();
    for control in (0..b' ').filter(|byte| !b"\t\n".contains(byte)).chain(iter::once(0x7f)) {
        let line = format!("Idempotency-Key: a{}b\r\n", char::from(control));
        assert_refused(&app, post_head(&line), &[400]);
    }
}
