//! Clients that are slow on purpose: each keeps no more than a connection, and that for a bounded time.

use std::time::{Duration, Instant};

use crate::{
    raw_connection::{DEADLINE, RawConnection},
    raw_requests::{animal, assert_no_animal, get, post, post_head},
    test_app::TestApp,
};

const LIMITS: &[(&str, &str)] = &[
    ("http.head_timeout", "300ms"),
    ("http.body_timeout", "300ms"),
    ("http.keep_alive", "300ms"),
    ("http.answer_timeout", "4s"),
];
/// How long a timeout of 300 ms may take on a busy machine, and still be that and not the next longer one.
const SOON: Duration = Duration::from_millis(3500);
const PAUSE: Duration = Duration::from_millis(50);

#[test]
fn a_connection_that_sends_nothing_is_closed_by_the_head_timeout() {
    let app = TestApp::start_with(LIMITS);
    let mut connection = RawConnection::open(app.address);

    let start = Instant::now();
    let responses = connection.responses_to_end();

    assert!(responses.iter().all(|response| response.status == 408), "{responses:?}");
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn a_slow_first_head_is_answered_408_and_the_connection_closed() {
    let app = TestApp::start_with(LIMITS);
    let endless = "GET /v1/pets HTTP/1.1\r\nHost: store.example\r\nX-Endless: ";
    for start_of_head in ["", "G", endless, "\r\n\r\n"] {
        let mut connection = RawConnection::open(app.address);
        connection.send(start_of_head);

        let start = Instant::now();
        connection.dribble(b'x', PAUSE);

        assert_eq!(connection.response().status, 408, "{start_of_head:?}");
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        connection.assert_closed();
    }
}

#[test]
fn a_slow_body_is_answered_408_and_the_connection_closed() {
    let app = TestApp::start_with(LIMITS);
    for start_of_request in [
        post_head("Content-Length: 10000\r\n"),
        post_head("Content-Length: 10000\r\n") + &animal("Rex"),
        post_head("Transfer-Encoding: chunked\r\n"),
        post_head("Transfer-Encoding: chunked\r\n") + "1000\r\n",
    ] {
        let mut connection = RawConnection::open(app.address);
        connection.send(&start_of_request);

        let start = Instant::now();
        connection.dribble(b'0', PAUSE);

        let response = connection.response();
        response.assert_error(408, "request_timeout");
        assert!(response.closes(), "{response:?}");
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_animal(&app);
}

#[test]
fn a_connection_that_was_answered_408_ends_whether_or_not_the_client_does() {
    // The answer timeout is far away: it is not what ends these.
    let app = TestApp::start_with(&[("http.body_timeout", "300ms")]);
    let mut connections = ["Content-Length: 10000\r\n", "Transfer-Encoding: chunked\r\n"].map(|framing| {
        let mut connection = RawConnection::open(app.address);
        connection.send(post_head(framing));
        connection.response().assert_error(408, "request_timeout");
        // The rest of the body, and another request: too late.
        connection.send("0\r\n\r\n".to_owned() + &post("Late"));
        connection
    });
    for connection in &mut connections {
        connection.assert_closed();
    }
    assert_no_animal(&app);
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
    let app = TestApp::start_with(LIMITS);
    let mut connection = RawConnection::open(app.address);
    connection.send(get("/v1/pets"));
    assert_eq!(connection.response().status, 200);

    let start = Instant::now();
    connection.dribble(byte, PAUSE);

    connection.assert_closed();
    assert!(start.elapsed() < 2 * SOON, "{:?}", start.elapsed());
}

#[test]
fn a_request_within_the_head_timeout_is_served_whenever_the_connection_began() {
    let app = TestApp::start_with(LIMITS);
    // Over more than a second: a clock that is only now and then set right must not make a deadline of its own.
    for _ in 0..12 {
        let mut connection = RawConnection::open(app.address);
        assert!(connection.is_silent_for(Duration::from_millis(100)), "closed before its time");
        connection.send(get("/v1/pets"));
        assert_eq!(connection.response().status, 200);
    }
}

#[test]
fn an_idle_connection_is_closed_when_it_was_kept_long_enough() {
    let app = TestApp::start_with(LIMITS);
    let mut connection = RawConnection::open(app.address);
    connection.send(get("/v1/pets"));
    assert_eq!(connection.response().status, 200);

    let start = Instant::now();
    connection.assert_closed();

    let kept = start.elapsed();
    assert!((Duration::from_millis(200)..SOON).contains(&kept), "{kept:?}");
}

#[test]
fn a_connection_that_is_used_is_kept_beyond_every_timeout() {
    let app = TestApp::start_with(LIMITS);
    let mut connection = RawConnection::open(app.address);

    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2500) {
        connection.send(post("Rex"));
        assert_eq!(connection.response().status, 201);
        assert!(connection.is_silent_for(Duration::from_millis(100)), "closed before its time");
    }
}

#[test]
fn a_client_that_never_reads_its_answers_is_closed() {
    let app = TestApp::start_with(LIMITS);
    let long_name = "\u{1f9ae}".repeat(255);
    for _ in 0..100 {
        assert_eq!(app.post(animal(&long_name)).status, 201);
    }
    let mut connection = RawConnection::open(app.address);
    let request = get("/v1/pets?limit=100");

    // Once both buffers between client and server are full, nothing but the end of the connection ends this.
    let start = Instant::now();
    while connection.try_send(&request).is_ok() {
        assert!(start.elapsed() < DEADLINE, "the service buffers answers without a bound");
    }

    assert!(start.elapsed() < DEADLINE, "the client gave up, not the service");
    assert_eq!(app.get("/v1/pets").status, 200);
}
