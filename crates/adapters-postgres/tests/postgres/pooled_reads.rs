//! Reads through a pooler that end otherwise than with an answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::{
    ports::{AddPet, PetRepository, StorageError},
    test_support::new_pet,
};
use tokio_postgres::Client;

use crate::{
    calls::{PATIENCE, a_moment},
    pooled::{LEFT_BEHIND, Pooled, pooling},
    store::client,
};

async fn waiting(client: &Client) -> i64 {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    client.query_typed_one(waiting, &[]).await.expect("a row").get(0)
}

/// With one connection, a transaction that is left open would keep everybody out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_dropped_leaves_no_transaction_open() {
    let pooled = Pooled::with(1, pooling()).await;
    let repository = pooled.repository();
    let added = repository.add(AddPet::new(new_pet())).await.expect("added").pet;
    let client = client(&pooled.server.url("postgres")).await;
    for _ in 0..20 {
        client.batch_execute("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE").await.expect("the lock");
        let reader = Arc::clone(&repository);
        let read = tokio::spawn(async move { reader.list(None, None, 10).await });
        let start = Instant::now();
        while waiting(&client).await == 0 {
            assert!(start.elapsed() < PATIENCE, "nobody reads");
            a_moment().await;
        }
        read.abort();
        assert!(read.await.expect_err("it was dropped").is_cancelled());
        client.batch_execute("COMMIT").await.expect("unlocked");
        assert_eq!(repository.find(added.id()).await.expect("found").as_ref(), Some(&added));
    }
    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(1, LEFT_BEHIND).await, [[""; 0]]);
}

/// Those that are dropped before they are sent, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_can_be_dropped_at_any_moment() {
    let pooled = Pooled::with(1, pooling()).await;
    let repository = pooled.repository();
    let added = repository.add(AddPet::new(new_pet())).await.expect("added").pet;
    for number in 0..300 {
        let read = tokio::time::timeout(Duration::from_micros(number * 10), repository.list(None, None, 10));
        if let Ok(list) = read.await {
            assert_eq!(list.expect("a list"), std::slice::from_ref(&added));
        }
    }
    assert_eq!(repository.find(added.id()).await.expect("found"), Some(added));
    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(1, LEFT_BEHIND).await, [[""; 0]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_takes_too_long_is_ended_in_the_server() {
    let timeout = Duration::from_millis(400);
    let pooled = Pooled::with(1, PostgresSettings { timeout, ..pooling() }).await;
    let repository = pooled.repository();
    repository.add(AddPet::new(new_pet())).await.expect("added");
    let client = client(&pooled.server.url("postgres")).await;
    client.batch_execute("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE").await.expect("the lock");
    let start = Instant::now();
    let failed = repository.list(None, None, 10).await.expect_err("it is locked");
    assert!(matches!(failed, StorageError::Unavailable(_) | StorageError::Timeout), "{failed:?}");
    assert!(start.elapsed() < timeout * 3, "{:?}", start.elapsed());
    while waiting(&client).await > 0 {
        assert!(start.elapsed() < PATIENCE, "it goes on");
        a_moment().await;
    }
    client.batch_execute("COMMIT").await.expect("unlocked");
    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(1, LEFT_BEHIND).await, [[""; 0]]);
    assert_eq!(repository.list(None, None, 10).await.expect("a list").len(), 1);
}
