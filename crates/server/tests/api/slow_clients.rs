//! Slow bodies: each holds one connection, and only until a timeout.
//!
//! The unit tests of `transport/exchange` cover all timeouts of a connection by a paused clock.

use std::time::Duration;

use crate::{
    raw_requests::{assert_ends, assert_no_pet, pet, post_head},
    test_app::TestApp,
};

const SHORT: Duration = Duration::from_millis(100);
/// Between the bytes of a slow client.
const PAUSE: Duration = Duration::from_millis(20);

#[test]
fn a_slow_body_is_a_408_and_ends_the_connection_and_that_of_a_refused_request() {
    let app = TestApp::start_changed(&[], |config| config.http.limits.body_timeout = SHORT);
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
