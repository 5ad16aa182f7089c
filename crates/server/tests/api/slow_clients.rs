//! Slow clients: each holds one connection, and only until a timeout.
//!
//! A lower bound counts from before its cause, so that a loaded machine cannot break it. An upper bound is the timeout
//! of the test connection: the settings that are not under test are far above it.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    raw_requests::{assert_no_pet, get, pet, post, post_head},
    test_app::TestApp,
};

const SHORT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(50);

#[test]
fn a_silent_connection_is_closed_by_the_head_timeout_and_not_before_it() {
    let app = TestApp::start_limited(&[], |limits| limits.head_timeout = SHORT);
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
    let app = TestApp::start_limited(&[], |limits| limits.head_timeout = Duration::from_secs(4));
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
    let app = TestApp::start_limited(&[], |limits| limits.body_timeout = SHORT);
    for start_of_request in [
        post_head("Content-Length: 10000\r\n") + &pet("Rex"),
        post_head("Transfer-Encoding: chunked\r\n") + "1000\r\n",
        post_head("Transfer-Encoding: chunked\r\n") + "2\r\n{}\r\n0\r\nTrailer: ",
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
    let app = TestApp::start_limited(&[], |limits| limits.body_timeout = SHORT);
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
fn a_slow_second_head_is_a_408_and_ends_the_connection() {
    let app = TestApp::start_limited(&[], |limits| limits.head_timeout = Duration::from_millis(300));
    let start = Instant::now();
    let mut connection = app.send(get("/v1/pets"));
    connection.response().assert_status(200);

    connection.dribble(b'x', PAUSE);

    connection.response().assert_status(408);
    connection.assert_closed();
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
}

#[test]
fn endless_empty_lines_are_ended_by_the_keep_alive_timeout() {
    let app = TestApp::start_with(&[("http.keep_alive", "300ms")]);
    let start = Instant::now();
    let mut connection = app.send(get("/v1/pets"));
    connection.response().assert_status(200);

    connection.dribble(b'\n', PAUSE);

    connection.assert_closed();
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
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
