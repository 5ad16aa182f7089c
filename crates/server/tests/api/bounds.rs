//! The bounds on concurrent connections.
//!
//! In `http1`, the unit tests of `pool` cover which connection makes room, and that others wait, by a paused
//! clock; those of `adapters-http/src/serve.rs` the bounds of the management listener. `tests/http/overload.rs` covers
//! the bounds on concurrent requests.

use std::{net::Ipv4Addr, thread};

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{
    metrics::Samples,
    raw_requests::{get, pet},
    test_app::TestApp,
};

const REFUSED: &str = r#"connections_refused_total{reason="max_connections"}"#;
const FILE: &str = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n";

/// Creates pets that fill a page of more than 100,000 bytes.
fn create_largest_page(app: &TestApp) {
    let longest = pet(&"\u{1f9ae}".repeat(255));
    for _ in 0..100 {
        app.create(&longest);
    }
}

#[test]
fn the_connection_that_was_idle_longest_makes_room() {
    let app = TestApp::start_with(&[("http.workers", "1"), ("http.max_connections", "3")]);
    let list = |connection: &mut RawConnection| {
        connection.send(get("/v1/pets"));
        connection.response().assert_status(200);
    };
    let [mut unused, mut oldest, mut used] = [(); 3].map(|()| app.connect());
    list(&mut used);
    list(&mut oldest);
    list(&mut used);

    let mut new = [(); 2].map(|()| app.connect());
    new.iter_mut().for_each(list);

    unused.assert_closed();
    oldest.assert_closed();
    assert_eq!(Samples::read(&app).http(REFUSED), 2);
    new.iter_mut().chain([&mut used]).for_each(list);
}

#[test]
fn a_reader_of_large_lists_makes_room_for_others() {
    let app = TestApp::start_changed(&[("http.workers", "1")], |config| {
        config.http.connections.max_unsent_bytes = 1024 * 1024;
    });
    create_largest_page(&app);
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

const CLIENT: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER_CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// An application with room for four connections, and a trusted proxy.
fn small_app() -> TestApp {
    TestApp::start_with(&[
        ("http.workers", "1"),
        ("http.max_connections", "4"),
        ("http.trusted_proxies", "127.0.0.3"),
    ])
}

/// Connections whose clients do not read responses that are larger than every buffer.
fn unread<const N: usize>(app: &TestApp, client: Ipv4Addr, request: &str) -> [RawConnection; N] {
    [(); N].map(|()| {
        let mut connection = RawConnection::open_unbuffered(app.address, client);
        connection.send(request.repeat(150));
        connection
    })
}

/// Asserts that a client is served while others, which read none of their responses, have every connection.
fn assert_served_beside(client: Ipv4Addr, request: &str) {
    let app = small_app();
    let mut readers: [_; 4] = unread(&app, client, request);
    for reader in &mut readers {
        // The start of a response is no progress.
        reader.assert_response_begins();
    }

    let mut new = RawConnection::open_unbuffered(app.address, OTHER_CLIENT);
    new.send(get("/v1/pets"));
    new.response().assert_status(200);
    let samples = Samples::read(&app);
    assert_eq!(samples.http("connections_full_total"), 1);
    assert_eq!(samples.http(REFUSED), 1);
}

#[test]
fn if_no_client_reads_its_responses_a_new_one_is_served() {
    let refused = "GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n";
    thread::scope(|scope| {
        for (client, request) in [(CLIENT, FILE), (CLIENT, refused), (PROXY, FILE)] {
            scope.spawn(move || assert_served_beside(client, request));
        }
    });
}

#[test]
fn a_slow_reader_receives_the_largest_page_while_an_address_that_reads_nothing_makes_room() {
    let app = small_app();
    create_largest_page(&app);
    let mut slow = RawConnection::open_unbuffered(app.address, OTHER_CLIENT);
    slow.send(get("/v1/pets?limit=100"));
    let _greedy: [_; 3] = unread(&app, CLIENT, FILE);

    for _ in 0..6 {
        let mut new = RawConnection::open_unbuffered(app.address, CLIENT);
        new.send(get("/openapi.json"));
        new.response().assert_status(200);
    }
    assert_eq!(slow.response().ids().len(), 100);
}
