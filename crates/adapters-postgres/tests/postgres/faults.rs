//! Connections that fail: calls fail in time, and succeed again without a restart.

use std::sync::Arc;

use animal_store_app::ports::PetRepository;
use animal_store_test_servers::FaultProxy;
use futures_util::future::join_all;
use tokio::{join, time::timeout};

use crate::{
    fixture::{Fixture, begin_to_find},
    metrics::failures,
    outcomes::{
        PROMPT, Success, Timeout, Unavailable, Unknown, add, add_outcome, find, list_find_add,
        not_ready, read_outcome, wait_for_outcome, wait_until_ready,
    },
    sql_session::SqlSession,
    store::{both_modes, in_both_modes, settings, short_timeout},
};

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_half_closed_or_terminated_are_replaced() {
    in_both_modes(&settings(), async |settings| {
        let (fixture, proxy) = Fixture::proxied(settings).await;
        let Fixture {
            store, observer, ..
        } = &fixture;
        // Two for reads, two for creates, one for readiness.
        observer.wait_for_backends(5).await;
        for end in [FaultProxy::cut, FaultProxy::half_close] {
            let before = observer.backends().await;
            end(&proxy);
            wait_for_outcome(&store.repository, Success).await;
            observer.wait_until_ended(&before).await;
        }
        observer
            .wait_until_ended(&observer.terminate_backends().await)
            .await;
        wait_for_outcome(&store.repository, Success).await;
        // The next check of the readiness opens its own.
        observer.wait_for_backends(4).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_frozen_connection_every_call_fails_in_time_and_later_ones_at_once() {
    // In a transaction, BEGIN has no response: the pet was not sent.
    let [plain, pooling] = both_modes(&short_timeout());
    for (settings, added, failed) in [
        (plain, Unknown, [1, 1, 0]),
        (pooling, Unavailable, [1, 0, 1]),
    ] {
        let (fixture, mut proxy) = Fixture::proxied(settings).await;
        let store = &fixture.store;
        let repository = &store.repository;
        assert_eq!(not_ready(&store.storage).await, None);
        // On a busy machine, requests of the start can be among them.
        let before = failures(&store.registry);
        proxy.freeze();
        let calls = async { join!(find(repository, 1), add(repository, "lost")) };
        let (found, lost) = timeout(PROMPT, calls).await.expect("they fail in time");
        assert_eq!((read_outcome(&found), add_outcome(&lost)), (Timeout, added));
        let after = failures(&store.registry);
        assert_eq!(
            [0, 1, 2].map(|reason| after[reason] - before[reason]),
            failed
        );
        // The first timeout marks its connection as broken, and the next read uses the other one.
        assert_eq!(
            read_outcome(&repository.list(None, None, 10).await),
            Timeout
        );
        for _ in 0..10 {
            assert_eq!(list_find_add(repository).await, [Unavailable; 3]);
        }
        assert!(not_ready(&store.storage).await.is_some());
        proxy.heal();
        wait_for_outcome(repository, Success).await;
        wait_until_ready(&store.storage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_fail_as_soon_as_the_server_terminates_their_connections() {
    let (fixture, _proxy) = Fixture::proxied(settings()).await;
    let Fixture {
        store,
        observer,
        database,
    } = &fixture;
    let locking = SqlSession::of(database).await;
    locking.lock().await;
    // A get and a list are in flight on different connections, and other gets wait.
    let get = begin_to_find(&store.repository, 1);
    observer.wait_for_table_locks(1).await;
    let repository = Arc::clone(&store.repository);
    let list = tokio::spawn(async move { read_outcome(&repository.list(None, None, 10).await) });
    observer.wait_for_table_locks(2).await;
    let reads: Vec<_> = [get]
        .into_iter()
        .chain((1..=20).map(|id| begin_to_find(&store.repository, id)))
        .collect();
    observer.terminate_backends().await;
    for read in join_all(reads).await {
        assert_eq!(read_outcome(&read), Unavailable);
    }
    assert_eq!(list.await.expect("no panic"), Unavailable);
    locking.unlock().await;
    wait_for_outcome(&store.repository, Success).await;
}
