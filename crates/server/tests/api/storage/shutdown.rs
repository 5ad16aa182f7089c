//! Graceful shutdown.

use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{
    raw_requests::{begin_post, get, pet, statuses},
    test_app::TestApp,
};

/// A request in flight, and the rest of its body.
fn begin_request(app: &TestApp) -> (RawConnection, String) {
    let body = pet("Rex");
    let mut connection = begin_post(app, &format!("Content-Length: {}\r\n", body.len()));
    let (left, right) = body.split_at(10);
    connection.send(left);
    (connection, right.to_owned())
}

#[track_caller]
fn wait_until_refused(app: &TestApp) {
    wait_until(|| TcpStream::connect_timeout(&app.address, RawConnection::TIMEOUT).is_err());
}

#[test]
fn a_request_in_flight_is_completed_and_its_connection_closed() {
    let app = TestApp::start();
    let (mut connection, rest) = begin_request(&app);

    app.begin_shutdown();
    wait_until_refused(&app);
    app.management("GET", "/ready").send().assert_status(503);
    app.management("GET", "/live").send().assert_status(200);
    connection.send(rest);

    let response = connection.response();
    response.assert_status(201);
    assert_eq!(response.json()["name"], "Rex");
    assert!(response.closes(), "{response:?}");
    connection.assert_closed();
    app.shut_down().expect("a graceful end");
}

#[test]
fn a_request_pipelined_behind_one_in_flight_is_not_carried_out() {
    let app = TestApp::start();
    let (mut connection, rest) = begin_request(&app);

    app.begin_shutdown();
    wait_until_refused(&app);
    connection.send(rest + &get("/v1/pets"));

    assert_eq!(statuses(&connection.responses_to_end()), [201]);
    app.shut_down().expect("a graceful end");
}

#[test]
fn connections_without_a_complete_request_do_not_delay_the_shutdown() {
    let app = TestApp::start();
    let mut half = app.send(get("/v1/pets"));
    half.response().assert_status(200);
    half.send("GET /v1/pets HT");
    let mut unused = app.connect();

    app.begin_shutdown();

    half.assert_closed();
    unused.assert_closed();
    app.shut_down().expect("a graceful end");
}

#[test]
fn a_client_that_does_not_read_its_responses_is_cut_off_without_an_error() {
    let app = TestApp::start_with(&[("shutdown.timeout", "1s")]);
    let mut slow = app.connect();
    // More responses than the buffers of the connection hold: sending ends when the service no longer reads.
    slow.sender().set_write_timeout(Some(Duration::from_millis(500))).expect("a write timeout");
    while slow.try_send(get("/openapi.json").repeat(100)).is_ok() {}
    let start = Instant::now();

    app.shut_down().expect("a graceful end");

    assert!(start.elapsed() >= Duration::from_millis(500), "{:?}", start.elapsed());
    drop(slow);
}
