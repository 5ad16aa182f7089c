//! The header `Idempotency-Key`: valid values, equal values, refused values. Its unit tests cover every form.

use animal_store_test_servers::Response;

use crate::{
    raw_requests::{assert_no_pet, names, post},
    test_app::TestApp,
};

/// A create with these header lines, byte for byte, each with its line end.
fn send(app: &TestApp, lines: &[u8]) -> Response {
    let request = post("Rex").into_bytes();
    let head = request.windows(2).position(|bytes| bytes == b"\r\n").expect("a line end") + 2;
    app.send([&request[..head], lines, &request[head..]].concat()).response()
}

#[test]
fn white_space_around_a_value_does_not_count() {
    let app = TestApp::start();

    // RFC 9110, section 5.5.
    for value in ["a", " \t a\t ", "\t\"a\" \t"] {
        send(&app, format!("Idempotency-Key:{value}\r\n").as_bytes()).assert_status(201);
    }

    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn an_invalid_value_is_a_400_and_creates_nothing() {
    let app = TestApp::start();
    // The last rows are not ASCII: Latin-1, and a byte of no encoding.
    let values: [&[u8]; 4] = [b"", b"a b", b"\xe9", b"\"\xff\""];

    for value in values {
        let response = send(&app, &[b"Idempotency-Key: ", value, b"\r\n"].concat());
        let message = response.assert_error(400, "invalid_header");
        let rule = "must be sent once, as 1 to 255 visible ASCII characters, bare or quoted";
        assert_eq!(message, format!("Idempotency-Key {rule}"));
    }

    assert_no_pet(&app);
}
