//! Uploads that are refused before they end, and uploads that never end.

use std::{
    io::Write,
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{
    raw_requests::{assert_no_pet, begin_post, get, pet, post, post_head, smuggled, statuses},
    test_app::TestApp,
};

/// Larger than a body may be, and smaller than the input that is drained.
const LARGE: usize = 512 * 1024;

/// The reason to refuse an upload before it ends.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    NoKey,
    TooLarge,
    NotJson,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunks,
}

const ALL: [(Refusal, Framing); 6] = [
    (Refusal::NoKey, Framing::Length),
    (Refusal::NoKey, Framing::Chunks),
    (Refusal::TooLarge, Framing::Length),
    (Refusal::TooLarge, Framing::Chunks),
    (Refusal::NotJson, Framing::Length),
    (Refusal::NotJson, Framing::Chunks),
];

/// A refused request whose body consists of requests that would create a pet.
fn upload(refusal: Refusal, framing: Framing, bytes: usize) -> Vec<u8> {
    let body = smuggled().repeat(bytes / smuggled().len());
    let mut head = match framing {
        Framing::Length => post_head(&format!("Content-Length: {}\r\n", body.len())),
        Framing::Chunks => post_head("Transfer-Encoding: chunked\r\n"),
    };
    match refusal {
        Refusal::NoKey => head = head.replacen("Authorization", "X-Authorization", 1),
        Refusal::TooLarge => {}
        Refusal::NotJson => head = head.replacen("application/json", "text/plain", 1),
    }
    let body = match framing {
        Framing::Length => body.into_bytes(),
        Framing::Chunks => {
            let mut chunks = Vec::new();
            for chunk in body.as_bytes().chunks(50_000) {
                chunks.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                chunks.extend_from_slice(chunk);
                chunks.extend_from_slice(b"\r\n");
            }
            chunks.extend_from_slice(b"0\r\n\r\n");
            chunks
        }
    };
    [head.into_bytes(), body].concat()
}

/// Asserts that the refusal arrives. `finish` runs before the connection is used again.
#[track_caller]
fn assert_refusal(app: &TestApp, connection: &mut RawConnection, refusal: Refusal, finish: impl FnOnce()) {
    let response = connection.response();
    match refusal {
        Refusal::NoKey => response.assert_error(401, "missing_api_key"),
        Refusal::TooLarge => response.assert_error(413, "payload_too_large"),
        Refusal::NotJson => response.assert_error(415, "unsupported_media_type"),
    };
    // The others come before the size of a chunked body is known.
    assert!(response.closes() || !matches!(refusal, Refusal::TooLarge), "{response:?}");
    finish();
    connection.finish_sending();
    connection.assert_closed();
    assert_no_pet(app);
}

#[test]
fn a_client_that_reads_while_it_uploads_sees_the_refusal() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = app.connect();
        let mut sender = connection.sender();
        let bytes = upload(refusal, framing, LARGE);
        let sending = thread::spawn(move || sender.write_all(&bytes));
        assert_refusal(&app, &mut connection, refusal, || {
            sending.join().expect("no panic").unwrap_or_else(|error| panic!("{refusal:?}, {framing:?}: {error}"));
        });
    }
}

#[test]
fn a_client_that_reads_after_its_upload_sees_the_refusal() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = app.send(upload(refusal, framing, LARGE));
        assert_refusal(&app, &mut connection, refusal, || {});
    }
}

#[test]
fn a_refused_upload_that_stops_is_closed_at_once() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = app.send(&upload(refusal, framing, LARGE)[..100_000]);
        let response = connection.response();
        assert!(matches!(response.status, 401 | 413 | 415), "{refusal:?}, {framing:?}: {response:?}");
        let start = Instant::now();
        connection.assert_closed();
        // The service drains input for five seconds, and has then closed its sending side.
        assert!(start.elapsed() < Duration::from_secs(4), "{refusal:?}, {framing:?}: {:?}", start.elapsed());
    }
    assert_no_pet(&app);
}

#[test]
fn a_bounded_part_of_a_refused_upload_is_read() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = app.connect();
        // Far more than the service and the buffers of the connection take.
        connection.try_send(upload(refusal, framing, 64 * LARGE)).expect_err("the service reads all of it");
    }
    assert_no_pet(&app);
}

#[test]
fn a_small_refused_body_does_not_end_the_connection() {
    let app = TestApp::start();
    let small = smuggled().repeat(16 * 1024 / smuggled().len());
    for refusal in [Refusal::NoKey, Refusal::NotJson] {
        for framing in [Framing::Length, Framing::Chunks] {
            let bytes = upload(refusal, framing, small.len());
            for split in [bytes.len(), bytes.len() - 1, 400] {
                let (first, rest) = bytes.split_at(split);
                let mut connection = app.send(first);
                let response = connection.response();
                assert!(matches!(response.status, 401 | 415), "{refusal:?}, {framing:?}, {split}: {response:?}");
                assert!(!response.closes(), "{refusal:?}, {framing:?}, {split}: {response:?}");
                connection.send(rest);
                connection.send(get("/v1/pets"));
                assert_eq!(connection.response().text(), "[]", "{refusal:?}, {framing:?}, {split}");
            }
        }
    }
    assert_no_pet(&app);
}

#[test]
fn the_rest_of_a_small_refused_body_has_the_body_timeout() {
    let app = TestApp::start_with(&[("http.body_timeout", "100ms")]);
    for framing in [Framing::Length, Framing::Chunks] {
        let mut connection = app.send(&upload(Refusal::NoKey, framing, 1000)[..400]);
        connection.response().assert_error(401, "missing_api_key");
        connection.assert_closed();
    }
}

#[test]
fn requests_behind_a_small_refused_body_are_served() {
    let app = TestApp::start();
    let refused = post("Rex").replacen("Authorization", "X-Authorization", 1);

    let mut connection = app.send(refused + &get("/v1/pets").repeat(100));
    connection.finish_sending();
    let responses = connection.responses_to_end();

    responses[0].assert_error(401, "missing_api_key");
    assert_eq!(statuses(&responses[1..]), [200; 100]);
}

#[test]
fn a_client_that_leaves_within_a_body_leaves_no_pet_and_no_request_in_flight() {
    // With a bound of one request of the key, another request shows whether one is in flight.
    let app = TestApp::start_with(&[("http.workers", "1"), ("http.max_in_flight_per_key", "1")]);
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
