//! Tokens that end by themselves.

use std::time::{Duration, Instant};

use animal_store_adapters_redis::RedisSettings;
use animal_store_app::{
    ports::{ApiKeyStore, NewToken},
    test_support::api_key,
};

use crate::{
    keys::{Linked, PATIENCE, name, new_token, settings},
    uses::{Accepted, Failed, Refused, a_moment, accepted_for, ask, comes_to},
};

const LIFETIME: Duration = Duration::from_millis(900);
/// By how much two readings of a clock in milliseconds may differ.
const CLOCK: Duration = Duration::from_millis(5);

/// Adds a token that lives so long. Returns when it has ended at the latest.
async fn add(linked: &Linked) -> Instant {
    let token = NewToken { lifetime: Some(LIFETIME), ..new_token("token") };
    linked.keys.store.add(api_key("key"), token).await.expect("add");
    Instant::now() + LIFETIME
}

/// Uses a token until it is refused.
async fn ends_between(linked: &Linked, earliest: Instant, latest: Instant) {
    loop {
        let asked = Instant::now();
        match ask(&linked.directory, "token").await {
            Accepted => assert!(asked < latest + CLOCK, "it passes for {:?} longer", asked - latest),
            Refused => return assert!(Instant::now() + CLOCK > earliest, "it ended early"),
            Failed => {}
        }
        a_moment().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_passes_to_its_end_and_no_longer() {
    let linked = Linked::new().await;
    let start = Instant::now();
    let end = add(&linked).await;
    ends_between(&linked, start + LIFETIME, end).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_is_set_by_hand_counts_for_a_token_that_is_cached() {
    let linked = Linked::new().await;
    linked.add_and_cache("key", "token").await;
    let start = Instant::now();
    linked.server.command(&["PEXPIRE", &name("shop:", "token"), "900"]);
    let end = Instant::now() + LIFETIME;
    ends_between(&linked, start + LIFETIME, end).await;
}

/// And so does one whose end is put off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_whose_end_is_taken_away_passes_on() {
    let linked = Linked::new().await;
    let end = add(&linked).await;
    comes_to(&linked.directory, "token", Accepted).await;
    linked.server.command(&["PERSIST", &name("shop:", "token")]);
    let (_, last) = accepted_for(&linked.directory, "token", end, end + LIFETIME / 2).await;
    assert_eq!(last, Accepted);
}

/// Redis reports nothing here: the cache knows the end by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_token_ends_in_time_without_redis() {
    let patient = RedisSettings { lease: 2 * PATIENCE, ..settings("shop:") };
    let linked = Linked::with(patient, |_| ()).await;
    let start = Instant::now();
    let end = add(&linked).await;
    loop {
        let look_ups = linked.look_ups();
        comes_to(&linked.directory, "token", Accepted).await;
        if linked.look_ups() == look_ups {
            break;
        }
    }
    linked.link.freeze();
    let (accepted, last) = accepted_for(&linked.directory, "token", start, end + LIFETIME).await;
    assert_eq!(last, Failed);
    assert!(accepted < end - start + CLOCK, "{accepted:?} of {:?}", end - start);
}
