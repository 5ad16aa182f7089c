//! Reads through a pooler that are dropped or wait for each other.

use std::sync::Arc;

use animal_store_app::ports::PetRepository;

use crate::{
    outcomes::adds_and_finds,
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
