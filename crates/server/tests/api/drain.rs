//! Connections while the service drains and stops.
//!
//! The unit tests of `http1/src/exchange` cover the idle grace by a paused clock.

use std::{
    io::ErrorKind,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use crate::prelude::*;

#[test]
fn every_response_of_a_draining_service_closes_its_connection() {
    let app = TestApp::start_with(&[("shutdown.drain_delay", "1m"), ("shutdown.timeout", "2m")]);
    let mut connections = [(), ()].map(|()| app.send(get("/v1/pets")));
    for connection in &mut connections {
        assert!(!connection.response().closes());
    }

    app.begin_shutdown();
    wait_until(|| app.management("GET", "/ready").send().status == 503);

    app.management("GET", "/live").send().assert_status(200);
    for (connection, request) in connections.iter_mut().zip([get("/v1/pets"), post("Rex")]) {
        connection.send(request);
        assert!(connection.response().closes());
        connection.assert_closed();
    }
    let mut new = app.send(get("/docs/swagger-ui-bundle.js"));
    assert!(new.response().closes());
}

#[test]
fn a_client_that_does_not_read_its_response_is_cut_off_without_an_error() {
    let app = TestApp::start_with(&[("shutdown.timeout", "1s")]);
    // More bytes than the buffers of the connection hold.
    let mut slow = app.send(get("/docs/swagger-ui-bundle.js"));
    slow.assert_response_begins();

    app.shut_down().expect("a graceful end");

    let end = slow
        .try_response()
        .expect_err("the end of the connection within the response");
    assert_eq!(end.kind(), ErrorKind::UnexpectedEof, "{end}");
}

/// Sends requests, each of which gets its response, until a response closes the connection.
fn be_busy(app: &TestApp, requests: &AtomicUsize) {
    let mut connection = app.connect();
    let list = (get("/v1/pets?limit=1"), 200);
    for (request, status) in [list, (post("Rex"), 201)].iter().cycle() {
        connection.send(request);
        let response = connection.response();
        response.assert_status(*status);
        requests.fetch_add(1, Ordering::Relaxed);
        if response.closes() {
            return;
        }
    }
}

#[test]
fn a_client_that_honours_connection_close_loses_no_request() {
    // On a busy machine, a client may be idle for a while.
    let app = TestApp::start_changed(&[], |config| {
        config.shutdown.idle_grace = Duration::from_mins(1);
    });
    let requests = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| be_busy(&app, &requests));
        }
        wait_until(|| requests.load(Ordering::Relaxed) > 200);
        app.begin_shutdown();
    });
    app.shut_down().expect("a graceful end");
}
