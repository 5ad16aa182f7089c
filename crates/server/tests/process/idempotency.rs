//! `Idempotency-Key` across rotations of the API key, with a frozen instance, and after its retention.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use animal_store_test_servers::{PgDatabase, RedisSpace, Response};

use crate::{
    keys::{keys, token_and_id},
    pets::{is_replay, keyed_create_request},
    postgres::Gate,
    program::{DEADLINE, Program, TOKEN},
};

const RETENTION: &str = "ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION";

#[track_caller]
fn create(address: SocketAddr, token: &str, key: &str, name: &str) -> Response {
    keyed_create_request(address, token, key, name).send()
}

/// Asserts that a create added a pet, and returns its id.
#[track_caller]
fn added(response: &Response) -> i64 {
    assert_eq!((response.status, is_replay(response)), (201, false), "{response:?}");
    response.json()["id"].as_i64().expect("an id")
}

/// Asserts that a response repeats an earlier one.
#[track_caller]
fn assert_replay(response: &Response, first: &Response) {
    assert_eq!((response.status, is_replay(response), response.text()), (201, true, first.text()), "{response:?}");
}

#[test]
fn a_key_outlives_the_token_that_it_was_used_with() {
    let space = RedisSpace::new();
    let (old, id) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());
    let (other, _) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());
    let mut running = Program::with_redis(&space).start();
    let address = running.address();
    let first = create(address, &old, "order-1", "Rex");
    added(&first);

    let (new, _) = token_and_id(&keys(&space, &["rotate", &id]).run());

    assert_replay(&create(address, &new, "order-1", "Rex"), &first);
    assert_eq!(create(address, &new, "order-1", "Tom").status, 422);
    let second = create(address, &new, "order-2", "Rex");
    added(&second);
    assert_replay(&create(address, &old, "order-2", "Rex"), &second);
    // Another API key with the same label has its own idempotency keys.
    added(&create(address, &other, "order-1", "Rex"));
}

#[test]
fn an_instance_that_freezes_between_an_insert_and_its_commit_does_not_hold_the_key() {
    let database = PgDatabase::new();
    let [mut frozen, mut running] = [(), ()].map(|()| {
        // With transaction pooling, the program itself sends the commit.
        Program::with_postgres(database.url())
            .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1s")
            .env("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", "true")
            .env("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL", database.url())
            .start()
    });
    let (frozen_address, running_address) = (frozen.address(), running.address());
    added(&create(frozen_address, TOKEN, "order-1", "Rex"));
    let gate = Gate::closed(&database);
    let _pending = keyed_create_request(frozen_address, TOKEN, "order-2", "Tom").begin().expect("a connection");
    gate.wait_for_insert();
    frozen.signal("STOP");
    gate.open();

    let start = Instant::now();
    let mut response = create(running_address, TOKEN, "order-2", "Tom");
    while response.status != 201 {
        assert_eq!(response.status, 503, "{response:?}");
        assert!(start.elapsed() < DEADLINE, "the key is never free");
        response = create(running_address, TOKEN, "order-2", "Tom");
    }

    added(&response);
    frozen.signal("CONT");
    assert_replay(&create(running_address, TOKEN, "order-2", "Tom"), &response);
    assert_eq!(database.sql("SELECT name FROM pets ORDER BY name"), "Rex\nTom");
}

#[test]
fn in_memory_a_key_is_free_after_its_retention() {
    let mut running = Program::with_key().env(RETENTION, "1s").start();
    let address = running.address();
    let start = Instant::now();
    let first = create(address, TOKEN, "order-1", "Rex");
    let id = added(&first);

    let mut response = create(address, TOKEN, "order-1", "Rex");
    while is_replay(&response) {
        assert_replay(&response, &first);
        assert!(start.elapsed() < DEADLINE, "the key is never free");
        response = create(address, TOKEN, "order-1", "Rex");
    }

    // The program measures the time with another clock.
    assert!(start.elapsed() > Duration::from_millis(990), "free after {:?}", start.elapsed());
    assert!(added(&response) > id);
}
