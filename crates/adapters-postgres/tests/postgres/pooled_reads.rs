//! Reads through a pooler that are dropped or wait for each other.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::ports::PetRepository;
use animal_store_domain::PetStatus;
use tokio::join;

use crate::{
    fixture::{Fixture, begin_to_find},
    outcomes::{Success, Timeout, Unavailable, add, adds_and_finds, eventually, find, read_outcome},
    pooled::{Pooled, pooling},
    sql_session::SqlSession,
    store::STATEMENT_TIMEOUT,
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
async fn the_wait_for_earlier_reads_is_part_of_the_timeout_of_a_read() {
    let timeout = STATEMENT_TIMEOUT;
    let fixture = Fixture::with(PostgresSettings { timeout, connections_per_worker: 1, ..pooling() }).await;
    let repository = &fixture.store.repository;
    assert!(find(repository, 1).await.is_ok());
    let backends = fixture.observer.backends().await;
    fixture.observer.lock().await;
    let first = begin_to_find(repository, 1);
    fixture.observer.wait_for_table_locks(1).await;
    let start = Instant::now();
    // The queue of gets waits for the first get. A list waits for the end of its transaction.
    let (first, second, third, list, list_by_status) = join!(
        first,
        find(repository, 1),
        find(repository, 1),
        repository.list(None, None, 10),
        repository.list(Some(PetStatus::Sold), None, 10)
    );
    assert_eq!(read_outcome(&first), Unavailable);
    assert_eq!([&second, &third].map(read_outcome), [Timeout; 2]);
    assert_eq!([&list, &list_by_status].map(read_outcome), [Timeout; 2]);
    // Two statements alone take 1.5 timeouts, and three take 2.25.
    assert!(start.elapsed() < timeout * 5 / 4, "{:?}", start.elapsed());
    fixture.observer.unlock().await;
    eventually("reads succeed", async || read_outcome(&find(repository, 1).await) == Success).await;
    assert_eq!(fixture.observer.backends().await, backends, "the connection is not broken");
    add(repository, "Rex").await.expect("added");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_does_not_wait_for_dropped_reads() {
    let fixture = Fixture::with(PostgresSettings { connections_per_worker: 1, ..pooling() }).await;
    let repository = &fixture.store.repository;
    fixture.observer.lock().await;
    let first = begin_to_find(repository, 1);
    fixture.observer.wait_for_table_locks(1).await;
    for _ in 0..10 {
        drop(begin_to_find(repository, 1));
    }
    fixture.observer.cancel_waiting("relation", 1).await;
    assert_eq!(read_outcome(&first.await), Unavailable);
    // It has a statement of its own, which PostgreSQL ends.
    let (found, ()) = join!(find(repository, 1), fixture.observer.cancel_waiting("relation", 1));
    assert_eq!(read_outcome(&found), Unavailable);
    fixture.observer.unlock().await;
    assert_eq!(read_outcome(&find(repository, 1).await), Success);
}
