//! Bulk access through PgBouncer, which assigns a server connection to each transaction.

use std::time::Duration;

use animal_store_app::ports::{BulkStorage, PetBatch};

use crate::{
    bulk_fixture::{SOURCE, batch, bulk_with, pets, progress, record, step, with_id, without_id},
    pooled::{Pooled, pooling},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_access_through_a_pooler_leaves_nothing_behind() {
    let pooled = Pooled::with(3, pooling()).await;
    let bulk = bulk_with(&pooled.url(), pooling());
    let pets_with_ids = PetBatch { step: Some(step(None, 2)), ..batch(vec![with_id(7, "a"), without_id("b")]) };
    bulk.add_pets(pets_with_ids).await.expect("added");
    bulk.add_idempotency_records(vec![record("shop", "1", 1, Duration::from_hours(1))]).await.expect("added");
    assert_eq!(bulk.import_progress(SOURCE).await.expect("a progress"), Some(progress(2)));
    bulk.finish_import(SOURCE).await.expect("finished");
    let mut snapshot = bulk.snapshot().await.expect("a snapshot");
    bulk.add_pets(batch(vec![without_id("c")])).await.expect("added");
    assert_eq!(snapshot.pets(None, 10).await.expect("pets").len(), 2);
    assert_eq!(snapshot.idempotency_records(None, 10).await.expect("records").len(), 1);
    assert_eq!(pets(&bulk, 2).await.expect("pets").len(), 3);
    drop((snapshot, bulk));
    pooled.leaves_nothing_behind().await;
}
