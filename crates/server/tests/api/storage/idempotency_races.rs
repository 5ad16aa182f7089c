//! The same create, sent by several clients at once.

use std::{
    sync::{Arc, Barrier},
    thread,
};

use animal_store_test_servers::{RawConnection, Response};
use serde_json::json;

use super::idempotency::{assert_created, keyed};
use crate::{
    raw_requests::{begin_post, names, pet, post_head, statuses},
    test_app::TestApp,
};

const CLIENTS: usize = 12;

/// Sends these creates at once, with the same key.
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
        clients.into_iter().map(|client| client.join().expect("a response")).collect()
    })
}

#[track_caller]
fn assert_conflict(response: &Response) {
    response.assert_header("Retry-After", Some("1")).assert_header("Idempotency-Replayed", None);
    response.assert_error(409, "idempotency_conflict");
}

#[test]
fn of_different_concurrent_creates_one_creates_a_pet_and_the_others_are_refused() {
    let app = TestApp::start();
    let bodies: Vec<_> = (0..CLIENTS).map(|number| pet(&format!("pet-{number}"))).collect();

    let responses = send_at_once(&app, "order-1", &bodies);

    let (created, others): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 201);
    let [first] = created[..] else { panic!("one pet: {responses:#?}") };
    assert_created(first);
    for other in others {
        if other.status == 422 { drop(other.assert_error(422, "idempotency_mismatch")) } else { assert_conflict(other) }
    }
    assert_eq!(app.get("/v1/pets").json(), json!([first.json()]));
}

#[test]
fn a_create_without_its_body_does_not_hold_the_key() {
    let app = TestApp::start();
    let body = pet("Rex");
    let lines = format!("Idempotency-Key: order-1\r\nContent-Length: {}\r\n", body.len());
    let [mut slow, gone]: [RawConnection; 2] = [(), ()].map(|()| begin_post(&app, &lines));
    drop(gone);

    let first = keyed(&app, "order-1", &body).send();
    assert_created(&first);
    slow.send(&body);

    let replay = slow.response();
    replay.assert_status(201).assert_header("Idempotency-Replayed", Some("true"));
    assert_eq!(replay.json(), first.json());
    assert_eq!(names(&app), ["Rex"]);
}

#[test]
fn equal_pipelined_creates_create_one_pet() {
    let app = TestApp::start();
    let body = pet("Rex");
    let lines = format!("Idempotency-Key: order-1\r\nContent-Length: {}\r\n", body.len());
    let mut connection = app.connect();

    connection.send(format!("{}{body}", post_head(&lines)).repeat(5));

    let responses = [(); 5].map(|()| connection.response());
    let replayed = responses.each_ref().map(|response| response.header("idempotency-replayed").is_some());
    assert_eq!(statuses(&responses), [201; 5]);
    assert_eq!(replayed, [false, true, true, true, true]);
    assert_eq!(names(&app), ["Rex"]);
}
