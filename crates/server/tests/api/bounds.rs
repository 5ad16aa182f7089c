//! No more connections and no more requests at a time than configured.

use std::time::{Duration, Instant};

use crate::{
    raw_connection::{DEADLINE, RawConnection},
    raw_requests::{animal, begin_post, get, names},
    test_app::TestApp,
};

#[test]
fn connections_beyond_the_bound_wait_and_are_served_when_another_ends() {
    let app = TestApp::start_with(&[("http.workers", "1"), ("http.max_connections", "2")]);
    let mut served: Vec<_> = (0..2).map(|_| RawConnection::open(app.address)).collect();
    for connection in &mut served {
        connection.send(get("/v1/pets"));
        assert_eq!(connection.response().status, 200);
    }
    let mut waiting: Vec<_> = (0..2).map(|_| RawConnection::open(app.address)).collect();
    for connection in &mut waiting {
        connection.send(get("/v1/pets"));
        assert!(connection.is_silent_for(Duration::from_millis(200)));
    }

    for mut connection in waiting {
        drop(served.pop());
        assert_eq!(connection.response().status, 200);
    }
}

#[test]
fn the_bound_on_connections_holds_whatever_the_number_of_workers() {
    let app = TestApp::start_with(&[("http.workers", "2"), ("http.max_connections", "1")]);
    let mut served = RawConnection::open(app.address);
    served.send(get("/v1/pets"));
    assert_eq!(served.response().status, 200);

    let mut waiting = RawConnection::open(app.address);
    waiting.send(get("/v1/pets"));

    assert!(waiting.is_silent_for(Duration::from_millis(200)));
    drop(served);
    assert_eq!(waiting.response().status, 200);
}

/// An animal whose body is still on its way; returns what is missing.
fn begin_slow_request(app: &TestApp) -> (RawConnection, String) {
    let body = animal("Rex");
    (begin_post(app, &format!("Content-Length: {}\r\n", body.len())), body)
}

#[test]
fn requests_beyond_the_bound_are_answered_503_before_their_api_key_is_looked_at() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let (mut slow, rest) = begin_slow_request(&app);

    for request in [
        app.request("GET", "/v1/pets"),
        app.request("POST", "/v1/pets").json(animal("Ada")),
        app.anonymous("GET", "/v1/pets"),
        app.anonymous("GET", "/nowhere"),
        app.request("DELETE", "/v1/pets"),
        app.request("POST", "/v1/pets").header("Content-Type", "text/plain").body("x"),
    ] {
        let response = request.send();
        response.assert_error(503, "overloaded");
        assert_eq!(response.header("retry-after"), Some("1"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert!(response.header("x-request-id").is_some());
    }

    slow.send(rest);
    assert_eq!(slow.response().status, 201);
    wait_for_service(&app);
    assert_eq!(app.anonymous("GET", "/v1/pets").send().status, 401);
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn a_connection_that_was_answered_503_is_as_good_as_before() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let mut connection = RawConnection::open(app.address);
    let (mut slow, rest) = begin_slow_request(&app);

    connection.send(get("/v1/pets"));
    connection.response().assert_error(503, "overloaded");
    slow.send(rest);
    assert_eq!(slow.response().status, 201);
    wait_for_service(&app);
    connection.send(get("/v1/pets"));

    assert_eq!(connection.response().status, 200);
}

#[test]
fn operators_are_answered_however_busy_the_service_is() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let (slow, _) = begin_slow_request(&app);

    for path in ["/live", "/ready"] {
        assert_eq!(app.management("GET", path).send().status, 200);
    }
    drop(slow);
}

/// An answer is on its way before its request has left the count.
fn wait_for_service(app: &TestApp) {
    let start = Instant::now();
    while app.get("/v1/pets").status == 503 {
        assert!(start.elapsed() < DEADLINE, "there is no end to the overload");
    }
}
