//! The orderly end, in this process.

use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::{
    raw_connection::{DEADLINE, RawConnection},
    raw_requests::{animal, begin_post, get},
    test_app::TestApp,
};

/// A request that is in flight, and the rest of its body.
fn begin_request(app: &TestApp) -> (RawConnection, String) {
    let body = animal("Rex");
    let mut connection = begin_post(app, &format!("Content-Length: {}\r\n", body.len()));
    let (left, right) = body.split_at(10);
    connection.send(left);
    (connection, right.to_owned())
}

#[track_caller]
fn wait_until_refused(app: &TestApp) {
    let start = Instant::now();
    while TcpStream::connect_timeout(&app.address, DEADLINE).is_ok() {
        assert!(start.elapsed() < DEADLINE, "connections are still accepted");
    }
}

#[test]
fn a_request_in_flight_is_answered_and_its_connection_closed() {
    let app = TestApp::start();
    let (mut connection, rest) = begin_request(&app);

    app.begin_shutdown();
    wait_until_refused(&app);
    connection.send(rest);

    let response = connection.response();
    assert_eq!(response.status, 201);
    assert_eq!(response.json()["name"], "Rex");
    assert!(response.closes(), "{response:?}");
    connection.assert_closed();
    app.shut_down().expect("an orderly end");
}

#[test]
fn a_request_that_waits_behind_one_in_flight_is_not_carried_out() {
    let app = TestApp::start();
    let (mut connection, rest) = begin_request(&app);

    app.begin_shutdown();
    wait_until_refused(&app);
    connection.send(rest + &get("/v1/pets"));

    let responses = connection.responses_to_end();
    assert_eq!(responses.iter().map(|response| response.status).collect::<Vec<_>>(), [201]);
    app.shut_down().expect("an orderly end");
}

#[test]
fn an_idle_connection_is_closed() {
    let app = TestApp::start();
    let mut used = RawConnection::open(app.address);
    used.send(get("/v1/pets"));
    assert_eq!(used.response().status, 200);

    app.begin_shutdown();

    used.assert_closed();
    app.shut_down().expect("an orderly end");
}

#[test]
fn connections_on_which_no_request_is_complete_hold_nothing_up() {
    let app = TestApp::start();
    let mut half = RawConnection::open(app.address);
    half.send(get("/v1/pets"));
    assert_eq!(half.response().status, 200);
    half.send("GET /v1/pets HT");
    let mut unused = RawConnection::open(app.address);

    app.begin_shutdown();

    half.assert_closed();
    unused.assert_closed();
    app.shut_down().expect("an orderly end");
}

#[test]
fn an_operator_sees_the_service_alive_and_not_ready_while_it_drains() {
    let app = TestApp::start();
    assert_eq!(app.management("GET", "/ready").send().status, 200);
    let (mut connection, rest) = begin_request(&app);

    app.begin_shutdown();
    wait_until_refused(&app);

    app.management("GET", "/ready").send().assert_error(503, "unavailable");
    assert_eq!(app.management("GET", "/live").send().status, 200);
    connection.send(rest);
    assert_eq!(connection.response().status, 201);
    app.shut_down().expect("an orderly end");
}

#[test]
fn a_service_without_clients_ends_in_order() {
    TestApp::start().shut_down().expect("an orderly end");
}

#[test]
fn a_request_that_hangs_is_cut_off_and_counted() {
    let app = TestApp::start_with(&[("shutdown.timeout", "300ms")]);
    let hanging: Vec<_> = (0..2).map(|_| begin_request(&app)).collect();

    let start = Instant::now();
    let message = app.shut_down().expect_err("requests were cut off").to_string();

    assert!(message.contains("timeout") && message.contains("2 requests"), "{message}");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    drop(hanging);
}
