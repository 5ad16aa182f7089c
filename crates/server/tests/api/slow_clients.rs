//! Slow clients: each holds one connection, and only until a timeout.
//!
//! The unit tests of `transport/exchange` cover the timeouts by a paused clock: here, each is short, and the others are
//! longer than the timeout of the test connection.

use std::time::Duration;

use animal_store_test_servers::RawConnection;

use crate::{
    raw_requests::{assert_ends, assert_no_pet, get, pet, post_head},
    test_app::TestApp,
};

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(2 * RawConnection::TIMEOUT.as_secs());
/// Between the bytes of a slow client.
const PAUSE: Duration = Duration::from_millis(20);

#[test]
fn a_slow_or_silent_head_is_a_408_and_ends_the_connection() {
    let app = TestApp::start_changed(&[], |config| {
        (config.http.limits.head_timeout, config.http.limits.keep_alive) = (SHORT, LONG);
    });
    let endless = "GET /v1/pets HTTP/1.1\r\nHost: store.example\r\nX-Endless: ";
    for start_of_head in ["", "G", endless, "\r\n\r\n"] {
        let mut connection = app.send(start_of_head);
        connection.dribble(b'x', PAUSE);
        connection.response().assert_status(408);
        connection.assert_closed();
    }
    app.connect().response().assert_status(408);
}

#[test]
fn a_slow_body_is_a_408_and_ends_the_connection_and_that_of_a_refused_request() {
    let app = TestApp::start_changed(&[], |config| {
        (config.http.limits.head_timeout, config.http.limits.body_timeout) = (LONG, SHORT);
    });
    let chunked = post_head("Transfer-Encoding: chunked\r\n");
    let sized = post_head("Content-Length: 10000\r\n") + &pet("Rex");
    for (start_of_request, status) in [
        (sized.replacen("Authorization", "X-Authorization", 1), 401),
        (sized, 408),
        (chunked.clone() + "1000\r\n", 408),
        (chunked + "2\r\n{}\r\n0\r\nTrailer: ", 408),
    ] {
        let mut connection = app.send(start_of_request);
        connection.dribble(b'0', PAUSE);
        let response = connection.response();
        response.assert_error(status, if status == 408 { "request_timeout" } else { "missing_api_key" });
        assert_ends(&mut connection, &response);
    }
    assert_no_pet(&app);
}

#[test]
fn an_idle_connection_is_closed_by_the_keep_alive_timeout_whatever_empty_lines_it_sends() {
    let app = TestApp::start_changed(&[("http.keep_alive", "100ms")], |config| {
        config.http.limits.head_timeout = LONG;
    });
    for dribbles in [false, true] {
        let mut connection = app.send(get("/v1/pets"));
        connection.response().assert_status(200);
        if dribbles {
            connection.dribble(b'\n', PAUSE);
        }
        connection.assert_closed();
    }
}
