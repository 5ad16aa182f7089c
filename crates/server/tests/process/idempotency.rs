//! `Idempotency-Key` across rotations of the API key, and after its retention.

use std::net::SocketAddr;

use animal_store_test_servers::{RedisSpace, Response, wait_until};

use crate::{
    keys::{keys, token_and_id},
    pets::{is_replay, keyed_create_request},
    program::{Program, TOKEN},
};

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
fn a_key_is_free_after_the_configured_retention_in_memory_and_in_a_file() {
    let file = Program::with_key().env("ANIMAL_STORE_STORAGE__BACKEND", "sqlite");
    for program in [Program::with_key(), file] {
        let mut running = program.env("ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION", "1s").start();
        let address = running.address();
        let first = create(address, TOKEN, "order-1", "Rex");
        let id = added(&first);

        wait_until(|| {
            let response = create(address, TOKEN, "order-1", "Rex");
            if is_replay(&response) {
                assert_replay(&response, &first);
            }
            !is_replay(&response) && added(&response) > id
        });
    }
}
