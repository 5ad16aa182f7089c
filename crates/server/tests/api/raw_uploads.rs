//! Uploads that are refused before they end, and uploads that never end.

use std::{
    io::Write,
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{
    raw_requests::{assert_no_pet, assert_nothing_smuggled, begin_post, get, pet, post, post_head, smuggled},
    test_app::TestApp,
};

const TEN_MIB: usize = 10 * 1024 * 1024;

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

/// A refused request whose body is 10 MiB of requests that would create a pet.
fn upload(refusal: Refusal, framing: Framing) -> Vec<u8> {
    let body = smuggled().repeat(TEN_MIB / smuggled().len());
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
    finish();
    assert_nothing_smuggled(app, connection, &response);
}

#[test]
fn a_client_that_reads_while_it_uploads_sees_the_refusal() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = app.connect();
        let mut sender = connection.sender();
        let bytes = upload(refusal, framing);
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
        let mut connection = app.send(upload(refusal, framing));
        assert_refusal(&app, &mut connection, refusal, || {});
    }
}

/// Refused uploads, of which only the start was sent.
fn refused_uploads(app: &TestApp) -> [RawConnection; 6] {
    ALL.map(|(refusal, framing)| {
        let mut connection = app.send(&upload(refusal, framing)[..100_000]);
        let response = connection.response();
        assert!(matches!(response.status, 401 | 413 | 415), "{refusal:?}, {framing:?}: {response:?}");
        connection
    })
}

#[test]
fn a_client_that_stops_its_refused_upload_is_closed_at_once() {
    let app = TestApp::start();
    for mut connection in refused_uploads(&app) {
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_refused_upload_that_neither_goes_on_nor_ends_is_ended_by_the_answer_timeout() {
    let app = TestApp::start_with(&[
        ("http.head_timeout", "300ms"),
        ("http.body_timeout", "100ms"),
        ("http.keep_alive", "100ms"),
        ("http.answer_timeout", "1s"),
    ]);
    for mut connection in refused_uploads(&app) {
        connection.assert_closed();
    }
}

#[test]
fn a_refused_client_that_sends_more_and_leaves_is_closed_at_once() {
    let app = TestApp::start();
    let refused = post("Rex").replacen("Authorization", "X-Authorization", 1);

    let start = Instant::now();
    let mut connection = app.send(refused + &get("/v1/pets").repeat(1000));
    connection.finish_sending();
    let responses = connection.responses_to_end();

    assert_eq!(responses.len(), 1, "{responses:?}");
    responses[0].assert_error(401, "missing_api_key");
    // A client that stays is drained for five seconds.
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
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
