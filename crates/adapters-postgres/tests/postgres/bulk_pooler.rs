//! Bulk access through PgBouncer, which assigns a server connection to each transaction.

use std::time::Duration;

use animal_store_app::{ports::BulkStorage, test_support::stored_pets};

use crate::{
    bulk_fixture::{bulk_with, record},
    pooled::{Pooled, pooling},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_access_through_a_pooler_leaves_nothing_behind() {
    let pooled = Pooled::with(3, pooling()).await;
    let bulk = bulk_with(&pooled.url(), pooling());
    bulk.check_writable().await.expect("writable");
    bulk.add_pets(stored_pets([7, 8])).await.expect("added");
    bulk.add_idempotency_records(vec![record("1", 7, Duration::from_hours(1))]).await.expect("added");
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    bulk.add_pets(stored_pets([9])).await.expect("added");
    assert_eq!(snapshot.pets(None, 10).await.expect("pets"), stored_pets([7, 8]));
    assert_eq!(snapshot.idempotency_records(None, 10).await.expect("records").len(), 1);
    drop(snapshot);
    pooled.leaves_nothing_behind().await;
}
