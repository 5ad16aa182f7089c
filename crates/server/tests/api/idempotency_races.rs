//! One create, sent by many at once.

use std::{
    sync::{Arc, Barrier},
    thread,
};

use serde_json::json;

use crate::{
    client::Response,
    idempotency::{assert_added, assert_replay, keyed},
    raw_connection::RawConnection,
    raw_requests::{animal, begin_post, names, post_head},
    test_app::TestApp,
};

const CLIENTS: usize = 12;

/// Sends these creates with one key, all at once.
fn send_at_once(app: &TestApp, key: &str, bodies: &[String]) -> Vec<Response> {
    let barrier = Arc::new(Barrier::new(bodies.len()));
    thread::scope(|scope| {
        let clients: Vec<_> = bodies
            .iter()
            .map(|body| {
                let (barrier, request) = (Arc::clone(&barrier), keyed(app, key, body));
                scope.spawn(move || {
                    barrier.wait();
                    request.send()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("an answer")).collect()
    })
}

#[track_caller]
fn assert_conflict(response: &Response) {
    response.assert_header("Retry-After", Some("1")).assert_header("Idempotency-Replayed", None);
    response.assert_error(409, "idempotency_conflict");
}

#[test]
fn of_the_same_creates_at_the_same_time_one_adds_and_the_others_replay_or_are_told_to_wait() {
    let app = TestApp::start();
    for round in 0..5 {
        let key = format!("order-{round}");
        let body = animal(&key);

        let responses = send_at_once(&app, &key, &vec![body.clone(); CLIENTS]);

        let (added, others): (Vec<_>, Vec<_>) = responses
            .iter()
            .partition(|response| response.status == 201 && response.header("Idempotency-Replayed").is_none());
        let [first] = added[..] else { panic!("one adds: {responses:#?}") };
        for other in others {
            if other.status == 201 { assert_replay(other, first) } else { assert_conflict(other) }
        }
        assert_replay(&keyed(&app, &key, &body).send(), first);
    }
    assert_eq!(names(&app), [0, 1, 2, 3, 4].map(|round| format!("order-{round}")));
}

#[test]
fn of_other_creates_at_the_same_time_one_adds_and_the_others_are_refused() {
    let app = TestApp::start();
    let bodies: Vec<_> = (0..CLIENTS).map(|number| animal(&format!("animal-{number}"))).collect();

    let responses = send_at_once(&app, "order-1", &bodies);

    let (added, others): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 201);
    let [first] = added[..] else { panic!("one adds: {responses:#?}") };
    assert_added(first);
    for other in others {
        if other.status == 422 { drop(other.assert_error(422, "idempotency_mismatch")) } else { assert_conflict(other) }
    }
    assert_eq!(app.get("/v1/pets").json(), json!([first.json()]));
}

#[test]
fn a_create_whose_body_is_still_to_come_holds_no_key() {
    let app = TestApp::start();
    let body = animal("Rex");
    let lines = format!("Idempotency-Key: order-1\r\nContent-Length: {}\r\n", body.len());
    let [mut slow, gone]: [RawConnection; 2] = [(), ()].map(|()| begin_post(&app, &lines));
    drop(gone);

    let first = keyed(&app, "order-1", &body).send();
    assert_added(&first);
    slow.send(&body);

    let replay = slow.response();
    assert_eq!((replay.status, replay.header("idempotency-replayed")), (201, Some("true")), "{replay:?}");
    assert_eq!(replay.json(), first.json());
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn creates_on_one_connection_that_do_not_wait_for_answers_add_one_animal() {
    let app = TestApp::start();
    let body = animal("Rex");
    let lines = format!("Idempotency-Key: order-1\r\nContent-Length: {}\r\n", body.len());
    let mut connection = RawConnection::open(app.address);

    connection.send(format!("{}{body}", post_head(&lines)).repeat(5));

    let responses = [(); 5].map(|()| connection.response());
    let replayed = responses.each_ref().map(|response| response.header("idempotency-replayed").is_some());
    assert!(responses.iter().all(|response| response.status == 201), "{responses:?}");
    assert_eq!(replayed, [false, true, true, true, true]);
    assert_eq!(names(&app), ["Rex"]);
}
