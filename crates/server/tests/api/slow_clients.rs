//! Slow clients: each holds one connection, and only until a timeout.
//!
//! A lower bound counts from before its cause, so that a loaded machine cannot break it. An upper bound is the timeout
//! of the test connection: the settings that are not under test are far above it.

use std::{
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::RawConnection;

use crate::{
    raw_requests::{assert_no_pet, get, pet, post, post_head},
    test_app::TestApp,
};

const SHORT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(50);

/// Settings for tests of the answer timeout, which must be longer than the others together.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The other timeouts of [`SETTINGS`].
const SHORTEST: Duration = Duration::from_millis(300);
const SETTINGS: &[(&str, &str)] = &[
    ("http.head_timeout", "300ms"),
    ("http.body_timeout", "300ms"),
    ("http.keep_alive", "300ms"),
    ("http.answer_timeout", "1s"),
];

#[test]
fn a_silent_connection_is_closed_by_the_head_timeout_and_not_before_it() {
    let app = TestApp::start_with(&[("http.head_timeout", "100ms")]);
    // Spread over more than half a second: the server's clock advances in steps.
    thread::scope(|scope| {
        for _ in 0..12 {
            let start = Instant::now();
            let mut connection = app.connect();
            scope.spawn(move || {
                let responses = connection.responses_to_end();
                assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
                assert!(responses.iter().all(|response| response.status == 408), "{responses:?}");
            });
            let _ = app.connect().is_silent_for(PAUSE);
        }
    });
}

#[test]
fn a_slow_first_head_is_a_408_and_ends_the_connection() {
    // On a busy machine, the start of each head arrives within this time.
    let app = TestApp::start_with(&[("http.head_timeout", "4s")]);
    let endless = "GET /v1/pets HTTP/1.1\r\nHost: store.example\r\nX-Endless: ";
    thread::scope(|scope| {
        for start_of_head in ["", "G", endless, "\r\n\r\n"] {
            let mut connection = app.send(start_of_head);
            scope.spawn(move || {
                connection.dribble(b'x', PAUSE);
                connection.response().assert_status(408);
                connection.assert_closed();
            });
        }
    });
}

#[test]
fn a_slow_body_is_a_408_and_ends_the_connection() {
    let app = TestApp::start_with(&[("http.body_timeout", "100ms")]);
    for start_of_request in [
        post_head("Content-Length: 10000\r\n"),
        post_head("Content-Length: 10000\r\n") + &pet("Rex"),
        post_head("Transfer-Encoding: chunked\r\n"),
        post_head("Transfer-Encoding: chunked\r\n") + "1000\r\n",
    ] {
        let mut connection = app.send(&start_of_request);

        connection.dribble(b'0', PAUSE);

        let response = connection.response();
        response.assert_error(408, "request_timeout");
        assert!(response.closes(), "{response:?}");
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_connection_ends_after_a_408_even_if_the_client_stays() {
    // The service waits for five seconds; the keep-alive and answer timeouts are far longer.
    let app = TestApp::start_with(&[("http.body_timeout", "100ms")]);
    let connections = ["Content-Length: 10000\r\n", "Transfer-Encoding: chunked\r\n"].map(|framing| {
        let mut connection = app.send(post_head(framing));
        connection.response().assert_error(408, "request_timeout");
        // The rest of the body and another request, both too late.
        connection.send("0\r\n\r\n".to_owned() + &post("Late"));
        connection
    });
    for mut connection in connections {
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_slow_second_head_is_ended_by_the_answer_timeout() {
    assert_ended_by_the_answer_timeout(b'x');
}

#[test]
fn endless_empty_lines_are_ended_by_the_answer_timeout() {
    assert_ended_by_the_answer_timeout(b'\n');
}

#[track_caller]
fn assert_ended_by_the_answer_timeout(byte: u8) {
    let app = TestApp::start_with(SETTINGS);
    let start = Instant::now();
    let mut connection = app.send(get("/v1/pets"));
    connection.response().assert_status(200);

    connection.dribble(byte, PAUSE);

    connection.assert_closed();
    assert!(start.elapsed() >= ANSWER_TIMEOUT, "{:?}", start.elapsed());
}

#[test]
fn an_idle_connection_is_closed_by_the_keep_alive_timeout_and_not_before_it() {
    let app = TestApp::start_with(&[("http.keep_alive", "100ms")]);
    let start = Instant::now();
    let mut connection = app.send(get("/v1/pets"));
    connection.response().assert_status(200);

    connection.assert_closed();

    assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
}

#[test]
fn a_connection_in_use_outlives_every_timeout() {
    let app = TestApp::start_with(SETTINGS);
    let deadline = Instant::now() + RawConnection::TIMEOUT;
    let mut connection = app.connect();
    let (mut start, mut sent) = (Instant::now(), Instant::now());
    while start.elapsed() < ANSWER_TIMEOUT * 6 / 5 {
        let last = sent;
        sent = Instant::now();
        let is_open = connection.try_send(post("Rex")).is_ok();
        if is_open && let Ok(Some(response)) = connection.try_response() {
            response.assert_status(201);
        } else {
            // A busy machine may use the connection too late. Then the test begins again.
            assert!(last.elapsed() >= SHORTEST, "it was closed {:?} after a request", last.elapsed());
            assert!(Instant::now() < deadline, "the connection is used too late again and again");
            connection = app.connect();
            (start, sent) = (Instant::now(), Instant::now());
        }
    }
}

#[test]
fn a_client_that_never_reads_is_ended_by_the_answer_timeout() {
    // On a busy machine, the pets are created within the other timeouts.
    let app = TestApp::start_with(&[
        ("http.head_timeout", "4s"),
        ("http.body_timeout", "4s"),
        ("http.keep_alive", "4s"),
        ("http.answer_timeout", "13s"),
    ]);
    let long_name = "\u{1f9ae}".repeat(255);
    for _ in 0..100 {
        app.create(pet(&long_name));
    }
    let mut connection = app.connect();
    let request = get("/v1/pets?limit=100");

    // Both buffers between client and server fill; then only the server can end the connection.
    let start = Instant::now();
    while connection.try_send(&request).is_ok() {
        assert!(start.elapsed() < RawConnection::TIMEOUT, "the service buffers responses without a bound");
    }

    assert!(start.elapsed() < RawConnection::TIMEOUT, "the client timed out, not the service");
    app.get("/v1/pets").assert_status(200);
}
