//! A directory whose link to Redis fails, or whose Redis does.

use std::time::{Duration, Instant};

use animal_store_adapters_redis::RedisSettings;
use animal_store_app::ports::ApiKeyDirectoryError;

use crate::{
    keys::{LEASE, Linked, MARGIN, PATIENCE, TIMEOUT, find, settings},
    uses::{Accepted, Failed, Refused, a_moment, ask, comes_to, is_ready, soon_comes_to},
};

/// A key that was used lately, one that was never used, and a token of no key.
async fn with_keys() -> Linked {
    let linked = Linked::new().await;
    linked.keys.add("unused", "unused").await;
    linked.add_and_cache("used", "used").await;
    linked
}

/// While nothing comes through: what was confirmed lately passes for a while, everything else fails.
async fn nothing_new_passes(linked: &Linked, since: Instant) {
    while since.elapsed() < 3 * LEASE {
        for token in ["used", "unused", "invented"] {
            let asked = Instant::now();
            let outcome = ask(&linked.directory, token).await;
            if token == "used" && asked < since + LEASE {
                assert_ne!(outcome, Refused, "{token}");
            } else {
                assert_eq!(outcome, Failed, "{token} after {:?}", asked - since);
            }
        }
        a_moment().await;
    }
    assert!(!is_ready(&linked.directory).await);
}

async fn everything_is_well_again(linked: &Linked) {
    for (token, outcome) in [("used", Accepted), ("unused", Accepted), ("invented", Refused)] {
        comes_to(&linked.directory, token, outcome).await;
    }
    becomes_ready(linked).await;
}

async fn becomes_ready(linked: &Linked) {
    let start = Instant::now();
    while !is_ready(&linked.directory).await {
        assert!(start.elapsed() < PATIENCE, "it does not become ready");
        a_moment().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_cut_is_made_anew() {
    let linked = with_keys().await;
    for _ in 0..10 {
        let before = connection_of_reports(&linked).expect("a session");
        linked.link.cut();
        let start = Instant::now();
        while connection_of_reports(&linked).is_none_or(|connection| connection == before) {
            assert!(start.elapsed() < PATIENCE, "there is no new session");
            a_moment().await;
        }
        everything_is_well_again(&linked).await;
    }
}

/// Redis' number of the connection on which it reports changes.
fn connection_of_reports(linked: &Linked) -> Option<String> {
    let clients = linked.server.command(&["CLIENT", "LIST"]);
    let tracking = clients.lines().find(|client| client.contains(" flags=tB "))?;
    tracking.split(' ').next().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_frozen_link_nothing_passes_that_redis_has_not_confirmed_lately() {
    let mut linked = with_keys().await;
    linked.link.freeze();
    nothing_new_passes(&linked, Instant::now()).await;

    linked.link.heal();
    everything_is_well_again(&linked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_link_everything_fails_until_there_is_one() {
    let mut linked = with_keys().await;
    linked.link.refuse();
    let refused = Instant::now();
    nothing_new_passes(&linked, refused).await;
    fails_at_once(&linked, "used").await;

    linked.link.heal();
    everything_is_well_again(&linked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_confirms_nothing_until_it_goes_on() {
    let linked = with_keys().await;
    linked.server.pause();
    nothing_new_passes(&linked, Instant::now()).await;

    linked.server.resume();
    everything_is_well_again(&linked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_look_ups_over_a_frozen_link_all_end_in_time() {
    let linked = with_keys().await;
    linked.link.freeze();
    let look_ups = (0..500).map(|number| {
        let directory = &linked.directory;
        async move { ask(directory, &format!("invented-{number}")).await }
    });
    let outcomes = futures_util::future::join_all(look_ups).await;
    assert!(outcomes.iter().all(|&outcome| outcome == Failed), "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_link_makes_look_ups_slow_and_nothing_else() {
    let delay = Duration::from_millis(50);
    let linked = Linked::with(settings("shop:"), |link| link.delay(delay)).await;
    let start = Instant::now();
    comes_to(&linked.directory, "invented", Refused).await;
    assert!(start.elapsed() >= 2 * delay, "it did not go over the link");
    linked.add_and_cache("key", "token").await;
    becomes_ready(&linked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_before_it_ends_where_an_answer_takes_a_quarter_of_it() {
    let lease = Duration::from_secs(3);
    let patient = RedisSettings { lease, timeout: lease, ..settings("shop:") };
    let linked = Linked::with(patient, |link| link.delay(lease * 27 / 200)).await;
    linked.add_and_cache("key", "token").await;
    let look_ups = linked.look_ups();
    let start = Instant::now();
    while start.elapsed() < 2 * lease {
        assert!(find(&linked.directory, "token").await.is_ok_and(|key| key.is_some()));
        assert!(is_ready(&linked.directory).await);
        a_moment().await;
    }
    assert_eq!(linked.look_ups(), look_ups, "it was not in the cache all the time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_too_slow_is_none() {
    let mut linked = with_keys().await;
    linked.link.delay(Duration::from_secs(1));
    nothing_new_passes(&linked, Instant::now()).await;

    linked.link.heal();
    everything_is_well_again(&linked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lost_everything_knows_no_key() {
    let mut linked = with_keys().await;
    linked.server.stop();
    // Long before a lease is over.
    soon_comes_to(&linked.directory, "used", Failed).await;
    assert_eq!(ask(&linked.directory, "unused").await, Failed);
    assert_eq!(ask(&linked.directory, "invented").await, Failed);

    linked.server.start_again();
    for token in ["used", "unused", "invented"] {
        comes_to(&linked.directory, token, Refused).await;
    }
    linked.add_and_cache("another", "another").await;
}

/// The quickest of some look-ups took no time: there was nothing to wait for.
async fn fails_at_once(linked: &Linked, token: &str) {
    let mut quickest = PATIENCE;
    for _ in 0..10 {
        let start = Instant::now();
        let outcome = find(&linked.directory, token).await;
        assert!(matches!(outcome, Err(ApiKeyDirectoryError::Unavailable(_))), "{token}: {outcome:?}");
        quickest = quickest.min(start.elapsed());
    }
    assert!(quickest < Duration::from_millis(50), "{token}: {quickest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_begins_without_a_link_fails_at_once_and_recovers() {
    let mut linked = Linked::with(settings("shop:"), animal_store_test_servers::FaultProxy::refuse).await;
    begins_without(&linked).await;

    linked.link.heal();
    recovers(&linked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_begins_with_a_frozen_link_fails_at_once_and_recovers() {
    let start = Instant::now();
    let mut linked = Linked::with(settings("shop:"), |link| link.freeze()).await;
    // Of which the server takes a part to start.
    assert!(start.elapsed() < TIMEOUT + MARGIN, "{:?}", start.elapsed());
    begins_without(&linked).await;

    linked.link.heal();
    recovers(&linked).await;
}

async fn begins_without(linked: &Linked) {
    linked.keys.add("key", "token").await;
    assert!(!is_ready(&linked.directory).await);
    for token in ["token", "invented"] {
        fails_at_once(linked, token).await;
    }
}

async fn recovers(linked: &Linked) {
    comes_to(&linked.directory, "token", Accepted).await;
    comes_to(&linked.directory, "invented", Refused).await;
    becomes_ready(linked).await;
}
