//! Connections that fail: calls fail with them, in time, and answer again without anything being started anew.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::PgPetRepository;
use futures_util::{FutureExt, future::join_all};

use crate::{
    calls::{
        AT_ONCE, Answered, Deadline, Outcome, PATIENCE, Unavailable, Unknown, a_moment, comes_to, comes_to_be_ready,
        each, find, not_ready, of_read,
    },
    session::Session,
    store::{Linked, MARGIN, Served, TIMEOUT, both_ways, impatient, settings},
};

/// In each call, two answers may be waited for: an add may have waited for another one's commit.
const IN_TIME: Duration = TIMEOUT.saturating_mul(2).saturating_add(MARGIN);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_were_cut_are_replaced() {
    for settings in both_ways(&settings()) {
        let linked = Linked::new(settings).await;
        let Linked { store, link, other, .. } = &linked;
        for _ in 0..3 {
            let before = other.backends().await;
            link.cut();
            comes_to(&store.repository, Answered, AT_ONCE).await;
            other.wait_for_the_end_of(&before).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_were_half_closed_are_replaced() {
    let linked = Linked::new(settings()).await;
    let Linked { store, link, other, .. } = &linked;
    let before = other.backends().await;
    link.half_close();
    other.wait_for_the_end_of(&before).await;
    comes_to(&store.repository, Answered, AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_connection_everything_fails_at_once() {
    let mut linked = Linked::new(settings()).await;
    let Linked { store, link, .. } = &mut linked;
    for _ in 0..2 {
        link.refuse();
        comes_to(&store.repository, Unavailable, AT_ONCE).await;
        for _ in 0..100 {
            assert_eq!(each(&store.repository, AT_ONCE).await, [Unavailable; 3]);
        }
        link.heal();
        comes_to(&store.repository, Answered, AT_ONCE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_frozen_link_everything_fails_in_time_and_then_at_once() {
    // In a transaction, it is the first word of that which is not answered: nothing was sent after it.
    for (settings, added) in both_ways(&impatient()).into_iter().zip([Unknown, Unavailable]) {
        let mut linked = Linked::new(settings).await;
        let Linked { store, link, .. } = &mut linked;
        assert_eq!(not_ready(&store.storage).await, None);
        link.freeze();
        stands_still(&store.repository, added).await;
        let start = Instant::now();
        assert!(not_ready(&store.storage).await.is_some());
        assert!(start.elapsed() < TIMEOUT + MARGIN);
        link.heal();
        comes_to(&store.repository, Answered, IN_TIME).await;
        comes_to_be_ready(&store.storage).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_server_stands_still_everything_fails_in_time_and_then_at_once() {
    let Served { store, server } = Served::new(impatient()).await;
    for _ in 0..2 {
        server.pause();
        stands_still(&store.repository, Unknown).await;
        server.resume();
        comes_to(&store.repository, Answered, IN_TIME).await;
    }
}

/// List and find are asked on one connection each, and add on a third.
async fn stands_still(repository: &PgPetRepository, added: Outcome) {
    let start = Instant::now();
    assert_eq!(each(repository, TIMEOUT + MARGIN).await, [Deadline, Deadline, added]);
    assert!(start.elapsed() >= TIMEOUT);
    for _ in 0..10 {
        assert_eq!(each(repository, AT_ONCE).await, [Unavailable; 3]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_slow_link_answers_are_late_and_no_others_fail() {
    let linked = Linked::new(settings()).await;
    let Linked { store, link, .. } = &linked;
    link.delay(Duration::from_millis(50));
    for _ in 0..5 {
        assert_eq!(each(&store.repository, PATIENCE).await, [Answered; 3]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_link_that_is_too_slow_everything_fails_in_time() {
    let mut linked = Linked::new(impatient()).await;
    let Linked { store, link, .. } = &mut linked;
    link.delay(TIMEOUT * 2);
    let start = Instant::now();
    // Meanwhile, new connections are opened.
    while start.elapsed() < TIMEOUT * 5 {
        for outcome in each(&store.repository, IN_TIME).await {
            assert_ne!(outcome, Answered);
        }
        a_moment().await;
    }
    link.heal();
    comes_to(&store.repository, Answered, IN_TIME).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_server_is_away_everything_fails_at_once_until_it_is_back() {
    let Served { store, mut server } = Served::new(settings()).await;
    for _ in 0..2 {
        server.stop();
        comes_to(&store.repository, Unavailable, AT_ONCE).await;
        for _ in 0..100 {
            assert_eq!(each(&store.repository, AT_ONCE).await, [Unavailable; 3]);
        }
        server.start_again();
        comes_to(&store.repository, Answered, AT_ONCE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_server_ends_are_replaced() {
    let linked = Linked::new(settings()).await;
    let Linked { store, other, .. } = &linked;
    // Two read, two write, and one is for probes.
    other.wait_for_backends(5).await;
    for _ in 0..3 {
        let before = other.backends().await;
        assert_eq!(other.terminate_backends().await, 5);
        other.wait_for_the_end_of(&before).await;
        comes_to(&store.repository, Answered, AT_ONCE).await;
        other.wait_for_backends(5).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_fail_when_the_server_ends_their_connections_and_not_later() {
    let linked = Linked::new(settings()).await;
    let Linked { store, other, database, .. } = &linked;
    let locking = Session::of(database).await;
    locking.lock().await;
    let mut reads = Box::pin(join_all((1..=20).map(|id| find(&store.repository, id))));
    assert!((&mut reads).now_or_never().is_none());
    // The first one on each connection.
    other.wait_for_waiting(2).await;
    let start = Instant::now();
    other.terminate_backends().await;
    for read in reads.await {
        assert_eq!(of_read(&read), Unavailable);
    }
    assert!(start.elapsed() < AT_ONCE);
    locking.unlock().await;
    comes_to(&store.repository, Answered, AT_ONCE).await;
}
