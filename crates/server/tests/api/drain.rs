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

#[track_caller]
fn wait_until_draining(app: &TestApp) {
    wait_until(|| app.management("GET", "/ready").send().status == 503);
}

#[test]
fn every_response_of_a_draining_service_closes_its_connection() {
    let app = TestApp::start_with(&[("shutdown.drain_delay", "1m"), ("shutdown.timeout", "2m")]);
    let mut connections = [(), ()].map(|()| app.send(get("/v1/pets")));
    for connection in &mut connections {
        assert!(!connection.response().closes());
    }

    app.begin_shutdown();
    wait_until_draining(&app);

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

/// Sends requests until a response closes the connection, and returns whether each got its response.
fn busy_client(app: &TestApp, requests: &AtomicUsize) -> Result<(), String> {
    let mut connection = app.connect();
    for request in [get("/v1/pets?limit=1"), post("Rex")].iter().cycle() {
        connection
            .try_send(request)
            .map_err(|error| format!("{error} while sending"))?;
        let response = connection
            .try_response()
            .map_err(|error| format!("{error} instead of a response"))?;
        let response = response.ok_or("the end of the connection instead of a response")?;
        assert_eq!(
            response.status,
            if request.starts_with("GET") { 200 } else { 201 },
            "{response:?}"
        );
        requests.fetch_add(1, Ordering::Relaxed);
        if response.closes() {
            break;
        }
    }
    Ok(())
}

#[test]
fn a_client_that_honours_connection_close_loses_no_request() {
    // On a busy machine, a client may be idle for a while.
    let app = TestApp::start_changed(&[("shutdown.drain_delay", "0s")], |config| {
        config.shutdown.idle_grace = Duration::from_mins(1);
    });
    let requests = AtomicUsize::new(0);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| busy_client(&app, &requests)))
            .collect();
        wait_until(|| requests.load(Ordering::Relaxed) > 200);
        app.begin_shutdown();
        for client in clients {
            client
                .join()
                .expect("no panic")
                .expect("a response to each request");
        }
    });
    app.shut_down().expect("a graceful end");
}
