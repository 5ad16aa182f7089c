//! The bounds on concurrent connections and concurrent requests.

use std::time::Duration;

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{
    raw_requests::{begin_post, get, names, pet},
    test_app::TestApp,
};

/// Asserts that a connection waits to be accepted. A loaded machine can only make this pass wrongly, never fail.
#[track_caller]
fn assert_waits(connection: &mut RawConnection) {
    assert!(connection.is_silent_for(Duration::from_millis(200)));
}

#[test]
fn connections_beyond_the_bound_wait_and_are_served_when_another_ends() {
    let app = TestApp::start_with(&[("http.workers", "1"), ("http.max_connections", "2")]);
    let mut served = [(), ()].map(|()| app.send(get("/v1/pets")));
    for connection in &mut served {
        connection.response().assert_status(200);
    }

    let mut waiting = [(), ()].map(|()| app.send(get("/v1/pets")));
    waiting.iter_mut().for_each(assert_waits);

    for (served, mut waiting) in served.into_iter().zip(waiting) {
        drop(served);
        waiting.response().assert_status(200);
    }
}

#[test]
fn the_bound_on_connections_holds_for_all_workers_together() {
    let app = TestApp::start_with(&[("http.workers", "2"), ("http.max_connections", "1")]);
    let mut served = app.send(get("/v1/pets"));
    served.response().assert_status(200);

    let mut waiting = app.send(get("/v1/pets"));

    assert_waits(&mut waiting);
    drop(served);
    waiting.response().assert_status(200);
}

/// A create without its body; returns the body.
fn begin_slow_request(app: &TestApp) -> (RawConnection, String) {
    let body = pet("Rex");
    (begin_post(app, &format!("Content-Length: {}\r\n", body.len())), body)
}

#[test]
fn requests_beyond_the_bound_are_a_503_before_their_api_key_is_checked() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let (mut slow, rest) = begin_slow_request(&app);

    for request in [
        app.request("GET", "/v1/pets"),
        app.request("POST", "/v1/pets").json(pet("Ada")),
        app.anonymous("GET", "/v1/pets"),
        app.anonymous("GET", "/nowhere"),
        app.request("DELETE", "/v1/pets"),
        app.request("POST", "/v1/pets").header("Content-Type", "text/plain").body("x"),
    ] {
        let response = request.send();
        response.assert_error(503, "overloaded");
        response.assert_header("Retry-After", Some("1")).assert_header("Cache-Control", Some("no-store"));
        assert!(response.header("X-Request-Id").is_some());
    }

    slow.send(rest);
    slow.response().assert_status(201);
    // A response arrives before its request leaves the count.
    wait_until(|| app.get("/v1/pets").status != 503);
    app.anonymous("GET", "/v1/pets").send().assert_status(401);
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn a_connection_can_be_used_after_a_503() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let mut connection = app.connect();
    let (mut slow, rest) = begin_slow_request(&app);

    connection.send(get("/v1/pets"));
    connection.response().assert_error(503, "overloaded");
    slow.send(rest);
    slow.response().assert_status(201);
    // A response arrives before its request leaves the count.
    wait_until(|| app.get("/v1/pets").status != 503);
    connection.send(get("/v1/pets"));

    connection.response().assert_status(200);
}

#[test]
fn the_management_listener_has_no_bound() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let (slow, _) = begin_slow_request(&app);

    for path in ["/live", "/ready"] {
        app.management("GET", path).send().assert_status(200);
    }
    drop(slow);
}
