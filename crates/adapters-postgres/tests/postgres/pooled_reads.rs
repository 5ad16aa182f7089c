//! Reads through a pooler that are dropped or wait for each other.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::ports::PetRepository;
use tokio::join;

use crate::{
    fixture::{Fixture, begin_to_find},
    outcomes::{Success, Unavailable, adds_and_finds, find, read_outcome},
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
