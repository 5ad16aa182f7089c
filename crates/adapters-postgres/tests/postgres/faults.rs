//! Connections that fail: calls fail in time, and succeed again without a restart.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::PgPetRepository;
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::FaultProxy;
use futures_util::future::join_all;

use crate::{
    fixture::begin_to_find,
    outcomes::{
        Outcome, PROMPT, Success, Timeout, Unavailable, Unknown, eventually, list_find_add, not_ready, read_outcome,
        wait_for_outcome, wait_until_ready,
    },
    sql_session::SqlSession,
    store::{MARGIN, ProxiedStore, TIMEOUT, both_modes, in_both_modes, settings, short_timeout},
};

/// A call may wait for two responses: an add waits for the commit of the batch before it.
const IN_TIME: Duration = TIMEOUT.saturating_mul(2).saturating_add(MARGIN);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_or_half_closed_are_replaced() {
    in_both_modes(&settings(), async |settings| {
        let proxied = ProxiedStore::new(settings).await;
        let ProxiedStore { store, proxy, observer, .. } = &proxied;
        for end in [FaultProxy::cut, FaultProxy::cut, FaultProxy::half_close] {
            let before = observer.backends().await;
            end(proxy);
            wait_for_outcome(&store.repository, Success, PROMPT).await;
            observer.wait_until_ended(&before).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_connection_every_call_fails_at_once() {
    let mut proxied = ProxiedStore::new(settings()).await;
    let ProxiedStore { store, proxy, observer, .. } = &mut proxied;
    for _ in 0..2 {
        proxy.refuse();
        wait_for_outcome(&store.repository, Unavailable, PROMPT).await;
        observer.wait_for_backends(0).await;
        let pets = observer.count("pets").await;
        for _ in 0..20 {
            assert_eq!(list_find_add(&store.repository, PROMPT).await, [Unavailable; 3]);
        }
        assert_eq!(observer.count("pets").await, pets);
        proxy.heal();
        wait_for_outcome(&store.repository, Success, PROMPT).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_frozen_connection_every_call_fails_in_time_and_later_ones_at_once() {
    // In a transaction, BEGIN has no response: the pet was not sent.
    for (settings, added) in both_modes(&short_timeout()).into_iter().zip([Unknown, Unavailable]) {
        let mut proxied = ProxiedStore::new(settings).await;
        let ProxiedStore { store, proxy, .. } = &mut proxied;
        assert_eq!(not_ready(&store.storage).await, None);
        proxy.freeze();
        fails_in_time_then_at_once(&store.repository, added).await;
        let start = Instant::now();
        assert!(not_ready(&store.storage).await.is_some());
        assert!(start.elapsed() < TIMEOUT + MARGIN);
        proxy.heal();
        wait_for_outcome(&store.repository, Success, IN_TIME).await;
        wait_until_ready(&store.storage).await;
    }
}

fn is_timeout_or_unavailable(outcome: Outcome) -> bool {
    [Timeout, Unavailable].contains(&outcome)
}

async fn fails_in_time_then_at_once(repository: &PgPetRepository, added: Outcome) {
    let start = Instant::now();
    let [list, find, add] = list_find_add(repository, TIMEOUT + MARGIN).await;
    assert_eq!(add, added);
    // On the same connection, the first timeout marks it as broken, and the other read may find it closed.
    let reads = [list, find];
    assert!(reads.contains(&Timeout) && reads.into_iter().all(is_timeout_or_unavailable), "{reads:?}");
    assert!(start.elapsed() >= TIMEOUT);
    // Then the next reads use the other connection.
    let [list, find, add] = list_find_add(repository, TIMEOUT + MARGIN).await;
    assert!([list, find].into_iter().all(is_timeout_or_unavailable), "{list:?}, {find:?}");
    assert_eq!(add, Unavailable);
    for _ in 0..10 {
        assert_eq!(list_find_add(repository, PROMPT).await, [Unavailable; 3]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_connection_that_is_too_slow_every_call_fails_in_time() {
    let mut proxied = ProxiedStore::new(short_timeout()).await;
    let ProxiedStore { store, proxy, .. } = &mut proxied;
    proxy.delay(TIMEOUT * 2);
    let start = Instant::now();
    eventually("connections are replaced several times", async || {
        assert!(!list_find_add(&store.repository, IN_TIME).await.contains(&Success));
        start.elapsed() > TIMEOUT * 5
    })
    .await;
    proxy.heal();
    wait_for_outcome(&store.repository, Success, IN_TIME).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_server_terminates_are_replaced() {
    let proxied = ProxiedStore::new(settings()).await;
    let ProxiedStore { store, observer, .. } = &proxied;
    // Two for reads, two for creates, one for readiness.
    observer.wait_for_backends(5).await;
    for _ in 0..3 {
        let terminated = observer.terminate_backends().await;
        observer.wait_until_ended(&terminated).await;
        wait_for_outcome(&store.repository, Success, PROMPT).await;
        // The next check of the readiness opens its own.
        observer.wait_for_backends(4).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_fail_as_soon_as_the_server_terminates_their_connections() {
    let proxied = ProxiedStore::new(settings()).await;
    let ProxiedStore { store, observer, database, .. } = &proxied;
    let locking = SqlSession::of(database).await;
    locking.lock().await;
    // A get and a list are in flight on different connections, and other gets wait.
    let get = begin_to_find(&store.repository, 1);
    observer.wait_for_table_locks(1).await;
    let repository = Arc::clone(&store.repository);
    let list = tokio::spawn(async move { read_outcome(&repository.list(None, None, 10).await) });
    observer.wait_for_table_locks(2).await;
    let reads: Vec<_> = [get].into_iter().chain((1..=20).map(|id| begin_to_find(&store.repository, id))).collect();
    let start = Instant::now();
    observer.terminate_backends().await;
    for read in join_all(reads).await {
        assert_eq!(read_outcome(&read), Unavailable);
    }
    assert_eq!(list.await.expect("no panic"), Unavailable);
    assert!(start.elapsed() < PROMPT);
    locking.unlock().await;
    wait_for_outcome(&store.repository, Success, PROMPT).await;
}
