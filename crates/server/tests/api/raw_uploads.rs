//! Uploads that are refused before they end, and uploads that never end.

use std::{
    io::Write,
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::wait_until;

use crate::{
    raw_requests::{assert_no_pet, begin_post, get, pet, post, post_head, smuggled},
    test_app::TestApp,
};

/// Larger than a body may be, and smaller than the input that is drained.
const LARGE: usize = 512 * 1024;

/// A reason to refuse an upload before it ends: the response, and what the head has in place of what.
type Refusal = (u16, &'static str, [&'static str; 2]);

const NO_KEY: Refusal = (401, "missing_api_key", ["Authorization", "X-Authorization"]);
const TOO_LARGE: Refusal = (413, "payload_too_large", ["", ""]);
const NOT_JSON: Refusal = (415, "unsupported_media_type", ["application/json", "text/plain"]);

/// A refused request whose body consists of requests that would create a pet, with its length or in chunks.
fn upload((_, _, [from, to]): Refusal, is_chunked: bool, bytes: usize) -> Vec<u8> {
    let body = smuggled().repeat(bytes / smuggled().len());
    if !is_chunked {
        let head = post_head(&format!("Content-Length: {}\r\n", body.len())).replacen(from, to, 1);
        return [head, body].concat().into_bytes();
    }
    let mut bytes = post_head("Transfer-Encoding: chunked\r\n").replacen(from, to, 1).into_bytes();
    for chunk in body.as_bytes().chunks(50_000) {
        bytes.extend([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Every refusal with either framing.
fn all() -> impl Iterator<Item = (Refusal, bool)> {
    [NO_KEY, TOO_LARGE, NOT_JSON].into_iter().flat_map(|refusal| [(refusal, false), (refusal, true)])
}

#[test]
fn a_client_that_reads_while_it_uploads_sees_the_refusal() {
    let app = TestApp::start();
    for (refusal, is_chunked) in all() {
        let mut connection = app.connect();
        let mut sender = connection.sender();
        let bytes = upload(refusal, is_chunked, LARGE);
        let sending = thread::spawn(move || sender.write_all(&bytes));

        let response = connection.response();

        response.assert_error(refusal.0, refusal.1);
        // The others come before the size of a chunked body is known.
        assert!(response.closes() || refusal.0 != 413, "{response:?}");
        sending.join().expect("no panic").unwrap_or_else(|error| panic!("{refusal:?}, {is_chunked}: {error}"));
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_refused_upload_that_stops_is_closed_at_once() {
    let app = TestApp::start();
    for (refusal, is_chunked) in all() {
        let mut connection = app.send(&upload(refusal, is_chunked, LARGE)[..100_000]);
        connection.response().assert_error(refusal.0, refusal.1);
        let start = Instant::now();
        connection.assert_closed();
        // The service drains input for five seconds, and has then closed its sending side.
        assert!(start.elapsed() < Duration::from_secs(4), "{refusal:?}, {is_chunked}: {:?}", start.elapsed());
    }
    assert_no_pet(&app);
}

#[test]
fn a_bounded_part_of_a_refused_upload_is_read() {
    let app = TestApp::start();
    // Far more than the service and the buffers of the connection take.
    app.connect().try_send(upload(TOO_LARGE, true, 64 * LARGE)).expect_err("the service reads all of it");
    assert_no_pet(&app);
}

#[test]
fn a_refusal_waits_for_a_small_body_and_does_not_end_the_connection() {
    let app = TestApp::start();
    for (refusal, is_chunked) in all().filter(|(refusal, _)| refusal.0 != 413) {
        let bytes = upload(refusal, is_chunked, 16 * 1024);
        for split in [bytes.len(), bytes.len() - 1, 400] {
            let (first, rest) = bytes.split_at(split);
            let mut connection = app.send(first);
            if !rest.is_empty() {
                assert!(connection.is_silent_for(Duration::from_millis(20)), "{refusal:?}, {is_chunked}, {split}");
            }
            connection.send(rest);
            let response = connection.response();
            response.assert_error(refusal.0, refusal.1);
            assert!(!response.closes(), "{refusal:?}, {is_chunked}, {split}: {response:?}");
            connection.send(get("/v1/pets"));
            assert_eq!(connection.response().text(), "[]", "{refusal:?}, {is_chunked}, {split}");
        }
    }
    assert_no_pet(&app);
}

#[test]
fn the_refusal_of_a_slow_body_comes_after_the_body_timeout_and_ends_the_connection() {
    let app = TestApp::start_limited(&[], |limits| limits.body_timeout = Duration::from_millis(100));
    for is_chunked in [false, true] {
        let start = Instant::now();
        let mut connection = app.send(&upload(NO_KEY, is_chunked, 1000)[..400]);
        let response = connection.response();
        response.assert_error(401, "missing_api_key");
        assert!(response.closes(), "{response:?}");
        assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
        connection.assert_closed();
    }
}

#[test]
fn a_client_that_leaves_within_a_body_leaves_no_pet_and_no_request_in_flight() {
    // With a bound of one request of the key, another request shows whether one is in flight.
    let app = TestApp::start_limited(&[("http.workers", "1")], |limits| limits.max_in_flight_per_key = 1);
    let body = pet("Rex");
    for (framing, part) in [
        (format!("Content-Length: {}\r\n", body.len() + 1), body.clone()),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("{:x}\r\n{body}\r\n", body.len())),
    ] {
        let mut connection = begin_post(&app, &framing);
        connection.send(part);
        wait_until(|| app.get("/v1/pets").status == 503);
        drop(connection);
        wait_until(|| app.get("/v1/pets").status == 200);
        assert_no_pet(&app);
    }
    app.post(pet("Ada")).assert_status(201);
}

#[test]
fn a_connection_that_ends_at_any_byte_creates_nothing() {
    let app = TestApp::start();
    let request = post("Rex");
    // Without the last byte: a complete request may create its pet.
    for end in 0..request.len() {
        drop(app.send(&request[..end]));
    }
    assert_no_pet(&app);
}
