//! Uploads that are refused before they end, and uploads that end early. The unit tests of `http1/src/exchange` cover
//! all timeouts of a connection by a paused clock.

use std::{io::Write, thread};

use crate::{
    raw_requests::{assert_goes_on, assert_no_pet, post, post_head, smuggled, statuses},
    test_app::TestApp,
};

/// A reason to refuse an upload before it ends: the response, and what the head has in place of what.
type Refusal = (u16, &'static str, [&'static str; 2]);

const NO_KEY: Refusal = (401, "missing_api_key", ["Authorization", "X-Authorization"]);
const TOO_LARGE: Refusal = (413, "payload_too_large", ["", ""]);
const NOT_JSON: Refusal = (
    415,
    "unsupported_media_type",
    ["application/json", "text/plain"],
);

/// A refused request whose body consists of requests that would create a pet, with its length or in chunks.
fn upload((_, _, [from, to]): Refusal, is_chunked: bool, bytes: usize) -> Vec<u8> {
    let body = smuggled().repeat(bytes / smuggled().len());
    if !is_chunked {
        let head = post_head(&format!("Content-Length: {}\r\n", body.len())).replacen(from, to, 1);
        return [head, body].concat().into_bytes();
    }
    let mut bytes = post_head("Transfer-Encoding: chunked\r\n")
        .replacen(from, to, 1)
        .into_bytes();
    for chunk in body.as_bytes().chunks(50_000) {
        bytes.extend([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn a_client_that_reads_while_it_uploads_sees_the_refusal() {
    let app = TestApp::start();
    for (refusal, is_chunked) in [NO_KEY, TOO_LARGE, NOT_JSON]
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let mut connection = app.connect();
        let mut sender = connection.sender();
        // Larger than a body may be, and smaller than the input that is dropped.
        let bytes = upload(refusal, is_chunked, 512 * 1024);
        let sending = thread::spawn(move || sender.write_all(&bytes));

        let response = connection.response();

        response.assert_error(refusal.0, refusal.1);
        assert!(response.closes(), "{response:?}");
        sending
            .join()
            .expect("no panic")
            .unwrap_or_else(|error| panic!("{refusal:?}, {is_chunked}: {error}"));
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_small_body_is_read_before_its_refusal_which_does_not_end_the_connection() {
    let app = TestApp::start();
    for (refusal, is_chunked) in [NO_KEY, NOT_JSON]
        .into_iter()
        .flat_map(|one| [(one, false), (one, true)])
    {
        let bytes = upload(refusal, is_chunked, 16 * 1024);
        let (first, last) = bytes.split_at(bytes.len() - 1);
        let mut connection = app.send(first);
        connection.send(last);
        let response = connection.response();
        response.assert_error(refusal.0, refusal.1);
        assert!(
            !response.closes(),
            "{refusal:?}, {is_chunked}: {response:?}"
        );
        assert_goes_on(&mut connection);
    }
    assert_no_pet(&app);
}

#[test]
fn a_connection_that_ends_at_any_byte_creates_nothing() {
    let app = TestApp::start();
    let request = post("Rex");
    let head = request.find("\r\n\r\n").expect("the end of the head") + 4;
    for end in 0..request.len() {
        let mut connection = app.send(&request[..end]);
        connection.finish_sending();
        let expected: &[u16] = if end < head { &[] } else { &[400] };
        assert_eq!(statuses(&connection.responses_to_end()), expected, "{end}");
    }
    assert_no_pet(&app);
}
