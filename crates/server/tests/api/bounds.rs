//! The bounds on concurrent connections and concurrent requests.

use std::time::{Duration, Instant};

use animal_store_test_servers::{HttpClient, RawConnection, Response, wait_until};

use crate::{
    metrics::Samples,
    raw_requests::{begin_post, get, names, pet, post_head},
    test_app::{OTHER_TOKEN, TestApp},
};

/// Asserts that a connection waits to be accepted. A loaded machine can only make this pass wrongly, never fail.
#[track_caller]
fn assert_waits(connection: &mut RawConnection) {
    assert!(connection.is_silent_for(Duration::from_millis(200)));
}

#[test]
fn connections_beyond_the_bound_wait_while_every_other_has_a_request() {
    for workers in ["1", "2"] {
        let app = TestApp::start_with(&[("http.workers", workers), ("http.max_connections", workers)]);
        let workers = workers.parse().expect("a number");
        let served: Vec<_> = (0..workers).map(|_| begin_slow_request(&app)).collect();

        let mut waiting: Vec<_> = (0..workers).map(|_| app.send(get("/v1/pets"))).collect();
        waiting.iter_mut().for_each(assert_waits);

        drop(served);
        for mut waiting in waiting {
            waiting.response().assert_status(200);
        }
    }
}

#[test]
fn the_connection_that_was_idle_longest_makes_room() {
    let app = TestApp::start_with(&[("http.workers", "1"), ("http.max_connections", "3")]);
    let mut unused = app.connect();
    let mut idle = [(), ()].map(|()| {
        let mut connection = app.send(get("/v1/pets"));
        connection.response().assert_status(200);
        connection
    });
    idle[0].send(get("/v1/pets"));
    idle[0].response().assert_status(200);
    let [mut used, mut oldest] = idle;

    let mut new = [(), ()].map(|()| {
        let mut connection = app.send(get("/v1/pets"));
        connection.response().assert_status(200);
        connection
    });

    unused.assert_closed();
    oldest.assert_closed();
    assert_eq!(Samples::read(&app).http(r#"connections_refused_total{reason="max_connections"}"#), 2);
    for connection in new.iter_mut().chain([&mut used]) {
        connection.send(get("/v1/pets"));
        connection.response().assert_status(200);
    }
}

#[test]
fn a_client_that_withholds_its_body_makes_room() {
    let bounds = [("http.workers", "1"), ("http.max_connections", "3")];
    let app = TestApp::start_limited(&bounds, |limits| limits.body_timeout = Duration::from_secs(30));
    let refused = post_head("Content-Length: 100\r\n").replacen("Authorization", "X-Authorization", 1);
    let too_large = post_head("Content-Length: 1000000\r\n");
    let start = Instant::now();
    let mut waiting = [refused, post_head("Content-Length: 100\r\n"), too_large].map(|head| app.send(head));
    waiting[2].response().assert_status(413);
    waiting[..2].iter_mut().for_each(assert_waits);

    // The connections stay open.
    let mut new = [(); 3].map(|()| app.send(get("/v1/pets")));
    for connection in &mut new {
        connection.response().assert_status(200);
    }
    let closed = Samples::read(&app).http(r#"connections_refused_total{reason="max_connections"}"#);
    // Input behind a body that is too large is drained for five seconds. A busy machine may take longer.
    let drained = usize::from(start.elapsed() >= Duration::from_secs(5));
    assert!(closed + drained >= 3, "{closed}");
}

#[test]
fn the_oldest_readers_of_large_lists_make_room_for_others() {
    let app = TestApp::start_limited(&[("http.workers", "1")], |limits| limits.max_unsent_bytes = 1024 * 1024);
    let long_name = "\u{1f9ae}".repeat(255);
    for _ in 0..100 {
        app.create(pet(&long_name));
    }
    // Each list has more than 100,000 bytes, and is too large for the buffers of its connection.
    let mut readers: Vec<_> = (0..30).map(|_| app.send(get("/v1/pets?limit=100").repeat(5))).collect();

    let refused = || Samples::read(&app).http(r#"connections_refused_total{reason="max_unsent_bytes"}"#);
    wait_until(|| refused() >= 10);
    let list = app.get("/v1/pets?limit=100").assert_status(200).json();
    assert_eq!(list.as_array().map(Vec::len), Some(100));
    let closed = readers.iter_mut().filter_map(|reader| {
        let complete = std::iter::from_fn(|| reader.try_response().ok().flatten()).take(5).count();
        (complete < 5).then_some(())
    });
    let closed = closed.count();
    assert_eq!(refused(), closed);
}

#[test]
fn idle_connections_do_not_block_the_management_listener() {
    // The connections stay open for longer than a response takes.
    let app = TestApp::start_limited(&[], |limits| {
        (limits.head_timeout, limits.body_timeout) = (Duration::from_secs(22), Duration::from_secs(22));
    });
    // The second half has a response, and a body that never arrives.
    let blocking = ["", "POST /live HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"];
    let idle: Vec<_> = blocking
        .iter()
        .flat_map(|bytes| (0..150).map(move |_| bytes))
        .map(|bytes| {
            let mut connection = RawConnection::open(app.management_address);
            // An idle connection may be closed already.
            let _ = connection.try_send(bytes);
            connection
        })
        .collect();

    let start = Instant::now();
    for path in ["/live", "/ready"] {
        app.management("GET", path).send().assert_status(200);
    }

    assert!(start.elapsed() < RawConnection::TIMEOUT, "{:?}", start.elapsed());
    drop(idle);
}

/// A create without its body; returns the body.
fn begin_slow_request(app: &TestApp) -> (RawConnection, String) {
    let body = pet("Rex");
    (begin_post(app, &format!("Content-Length: {}\r\n", body.len())), body)
}

fn list_with_other_key(app: &TestApp) -> Response {
    HttpClient::new(app.address).with_token(OTHER_TOKEN).get("/v1/pets")
}

#[test]
fn requests_that_wait_for_their_body_leave_their_permits_to_others() {
    let app = TestApp::start_limited(&[("http.max_in_flight", "20")], |limits| {
        (limits.max_in_flight_per_key, limits.body_timeout) = (40, Duration::from_secs(30));
    });
    // Half of these connections exceed the share of their key.
    let waiting: Vec<_> = (0..80)
        .map(|number| {
            let framing = if number % 2 == 0 { "Content-Length: 30\r\n" } else { "Transfer-Encoding: chunked\r\n" };
            app.send(post_head(&format!("{framing}Expect: 100-continue\r\n")))
        })
        .collect();

    // If both workers refuse the key, the heads of 40 of these requests have arrived. The query is invalid: with a
    // valid one, this request could keep a permit from a head while it waits for the storage.
    wait_until(|| (0..4).all(|_| app.get("/v1/pets?limit=0").status == 503));

    for _ in 0..100 {
        let start = Instant::now();
        list_with_other_key(&app).assert_status(200);
        assert!(start.elapsed() < RawConnection::TIMEOUT, "{:?}", start.elapsed());
    }
    app.management("GET", "/ready").send().assert_status(200);
    drop(waiting);
}

#[test]
fn a_body_that_is_arriving_takes_no_permit() {
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let mut arriving: Vec<_> = (0..20).map(|_| app.send(post_head("Content-Length: 30\r\n"))).collect();
    for connection in &mut arriving {
        assert!(connection.is_silent_for(Duration::from_millis(10)));
    }

    for _ in 0..10 {
        app.get("/v1/pets").assert_status(200);
    }
}

#[test]
fn requests_beyond_the_share_of_their_key_are_a_503_and_other_keys_are_served() {
    let app = TestApp::start_limited(&[("http.workers", "1")], |limits| limits.max_in_flight_per_key = 2);
    let mut slow = [(), ()].map(|()| begin_slow_request(&app));

    for request in [app.request("GET", "/v1/pets"), app.request("POST", "/v1/pets").json(pet("Ada"))] {
        let response = request.send();
        response.assert_header("Retry-After", Some("1")).assert_error(503, "overloaded");
    }
    assert_eq!(Samples::read(&app).http(r#"requests_shed_total{reason="key_share"}"#), 2);
    list_with_other_key(&app).assert_status(200);

    for (connection, body) in &mut slow {
        connection.send(body);
        connection.response().assert_status(201);
    }
    wait_until(|| app.get("/v1/pets").status == 200);
    assert_eq!(names(&app), ["Rex", "Rex"]);
}
