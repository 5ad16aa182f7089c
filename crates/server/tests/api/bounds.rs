//! The bounds on concurrent connections.
//!
//! In `http1`, the unit tests of `pool` and `exchange` cover which connection makes room, and that others wait, by a
//! paused clock; those of `adapters-http/src/serve.rs` the bounds of the management listener. `tests/http/overload.rs`
//! covers the bounds on concurrent requests, and `process/file_limit.rs` idle connections that make room.

use std::{net::Ipv4Addr, thread};

use crate::prelude::*;

#[test]
fn a_reader_of_large_lists_makes_room_for_others() {
    let app = TestApp::start_changed(&[("http.workers", "1")], |config| {
        config.http.connections.max_unsent_bytes = 1024 * 1024;
    });
    let longest = pet(&"\u{1f9ae}".repeat(255));
    for _ in 0..100 {
        app.create(&longest);
    }
    // Five pages are too large for the buffers of their connection.
    let lists = get("/v1/pets?limit=100").repeat(5);
    let mut readers: Vec<_> = (0..15).map(|_| app.send(&lists)).collect();

    let series = r#"connections_refused_total{reason="max_unsent_bytes"}"#;
    let refused = || Samples::read(&app).http(series);
    wait_until(|| refused() > 0);
    assert_eq!(app.get("/v1/pets?limit=100").ids().len(), 100);
    readers.retain_mut(|reader| {
        let mut responses = (0..5).map(|_| reader.try_response());
        responses.any(|response| !matches!(response, Ok(Some(_))))
    });
    assert_eq!(refused(), readers.len());
}

/// Asserts that a client is served while others, which read none of their responses, have every connection.
fn assert_served_beside(client: Ipv4Addr, request: &str) {
    let app = TestApp::start_with(&[
        ("http.workers", "1"),
        ("http.max_connections", "4"),
        ("http.trusted_proxies", "127.0.0.3"),
    ]);
    // Their responses are larger than every buffer.
    let mut readers = [(); 4].map(|()| RawConnection::open_unbuffered(app.address, client));
    for reader in &mut readers {
        reader.send(request.repeat(150));
    }
    for reader in &mut readers {
        // The start of a response is no progress.
        reader.assert_response_begins();
    }

    let mut new = RawConnection::open_unbuffered(app.address, [127, 0, 0, 2].into());
    new.send(get("/v1/pets"));
    new.response().assert_status(200);
    let samples = Samples::read(&app);
    assert_eq!(samples.http("connections_full_total"), 1);
    let refused = r#"connections_refused_total{reason="max_connections"}"#;
    assert_eq!(samples.http(refused), 1);
}

#[test]
fn if_no_client_reads_its_responses_a_new_one_is_served() {
    let file = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n";
    let refused = "GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n";
    thread::scope(|scope| {
        // The last one is a trusted proxy.
        let client = Ipv4Addr::LOCALHOST;
        let proxy = Ipv4Addr::new(127, 0, 0, 3);
        for (client, request) in [(client, file), (client, refused), (proxy, file)] {
            scope.spawn(move || assert_served_beside(client, request));
        }
    });
}
