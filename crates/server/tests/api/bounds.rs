//! The bounds on concurrent connections and concurrent requests.
//!
//! In `adapters-http`, the unit tests of `transport/connections` cover which connection makes room, and that others
//! wait, by a paused clock; those of `limits` the bounds of the management listener; those of `middleware/in_flight`
//! the permits of requests that wait for their body.

use animal_store_test_servers::{RawConnection, wait_until};

use crate::{
    metrics::Samples,
    raw_requests::{begin_create, get, pet},
    test_app::TestApp,
};

#[test]
fn connections_beyond_the_bound_are_served_when_others_end() {
    for workers in ["1", "2"] {
        let app =
            TestApp::start_with(&[("http.workers", workers), ("http.max_connections", workers)]);
        let count = workers.parse().expect("a number");
        let served: Vec<_> = (0..count).map(|_| begin_create(&app)).collect();

        let mut waiting: Vec<_> = (0..count).map(|_| app.send(get("/v1/pets"))).collect();
        wait_until(|| Samples::read(&app).http("connections_open") == 2 * count);
        assert_eq!(Samples::read(&app).http("requests_in_flight"), count);

        drop(served);
        for waiting in &mut waiting {
            waiting.response().assert_status(200);
        }
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
    assert_eq!(
        Samples::read(&app).http(r#"connections_refused_total{reason="max_connections"}"#),
        2
    );
    new.iter_mut().chain([&mut used]).for_each(list);
}

#[test]
fn a_reader_of_large_lists_makes_room_for_others() {
    let app = TestApp::start_changed(&[("http.workers", "1")], |config| {
        config.http.limits.max_unsent_bytes = 1024 * 1024;
    });
    let long_name = "\u{1f9ae}".repeat(255);
    for _ in 0..100 {
        app.create(pet(&long_name));
    }
    // Each list has more than 100,000 bytes, and five are too large for the buffers of their connection.
    let mut readers: Vec<_> = (0..15)
        .map(|_| app.send(get("/v1/pets?limit=100").repeat(5)))
        .collect();

    let refused =
        || Samples::read(&app).http(r#"connections_refused_total{reason="max_unsent_bytes"}"#);
    wait_until(|| refused() > 0);
    assert_eq!(app.get("/v1/pets?limit=100").ids().len(), 100);
    let is_cut = |reader: &mut RawConnection| {
        let complete = std::iter::from_fn(|| reader.try_response().ok().flatten())
            .take(5)
            .count();
        complete < 5
    };
    let cut = readers
        .iter_mut()
        .map(is_cut)
        .filter(|&is_cut| is_cut)
        .count();
    assert_eq!(refused(), cut);
}
