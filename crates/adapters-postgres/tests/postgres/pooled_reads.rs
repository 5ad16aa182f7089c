//! Reads through a pooler that are dropped or wait for each other.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::ports::PetRepository;
use futures_util::{FutureExt, future::join};

use crate::{
    fixture::Fixture,
    outcomes::{Success, Timeout, Unavailable, add, adds_and_finds, eventually, find, read_outcome},
    pooled::{Pooled, pooling},
    sql_session::SqlSession,
};

/// With one connection, an open transaction would block everything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_read_leaves_no_transaction_open() {
    let pooled = Pooled::with(1, pooling()).await;
    let repository = pooled.repository();
    let added = adds_and_finds(&repository).await;
    let observer = SqlSession::at(&pooled.server.url("postgres")).await;
    for _ in 0..20 {
        observer.lock().await;
        let reader = Arc::clone(&repository);
        let read = tokio::spawn(async move { reader.list(None, None, 10).await });
        observer.wait_for_table_locks(1).await;
        read.abort();
        assert!(read.await.expect_err("it was dropped").is_cancelled());
        observer.unlock().await;
        assert_eq!(repository.find(added.id()).await.expect("found").as_ref(), Some(&added));
    }
    pooled.leaves_nothing_behind().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_can_be_dropped_at_any_moment() {
    let pooled = Pooled::with(1, pooling()).await;
    let repository = pooled.repository();
    let added = adds_and_finds(&repository).await;
    for number in 0..300 {
        let read = tokio::time::timeout(Duration::from_micros(number * 10), repository.list(None, None, 10));
        if let Ok(list) = read.await {
            assert_eq!(list.expect("a list"), std::slice::from_ref(&added));
        }
    }
    assert_eq!(repository.find(added.id()).await.expect("found"), Some(added));
    pooled.leaves_nothing_behind().await;
}

/// PostgreSQL ends each statement after three quarters of the timeout: two of them take longer than a read may wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_wait_for_earlier_reads_up_to_the_timeout_but_not_for_dropped_ones() {
    let settings = PostgresSettings { timeout: Duration::from_secs(2), connections_per_worker: 1, ..pooling() };
    let fixture = Fixture::with(settings).await;
    let repository = &fixture.store.repository;
    assert!(find(repository, 1).await.is_ok());
    let backends = fixture.observer.backends().await;
    fixture.observer.lock().await;
    let mut first = find(repository, 1).boxed();
    assert!((&mut first).now_or_never().is_none());
    fixture.observer.wait_for_table_locks(1).await;
    for _ in 0..10 {
        assert!(find(repository, 1).boxed().now_or_never().is_none());
    }
    let [mut second, mut third] = [find(repository, 1).boxed(), find(repository, 1).boxed()];
    assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
    let (second_and_third, first) = join(join(second, third), first).await;
    assert_eq!(read_outcome(&first), Unavailable);
    assert_eq!(read_outcome(&second_and_third.0), Unavailable, "the second read got the connection");
    assert_eq!(read_outcome(&second_and_third.1), Timeout);
    fixture.observer.unlock().await;
    eventually("reads succeed", async || read_outcome(&find(repository, 1).await) == Success).await;
    assert_eq!(fixture.observer.backends().await, backends, "the connection is not broken");
    add(repository, "Rex").await.expect("added");
}
