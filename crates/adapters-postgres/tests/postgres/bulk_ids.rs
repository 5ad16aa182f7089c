//! Pets that keep their ids, beside creates. The contract suite adds them during concurrent creates.

use std::sync::Arc;

use animal_store_app::{ports::BulkStorage, test_support::stored_pets};
use futures_util::FutureExt;

use crate::{
    bulk_fixture::bulk,
    fixture::Fixture,
    sql_session::SqlSession,
    store::{in_both_modes, settings},
};

/// The create has taken its id from the sequence, and its row is not inserted yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_waits_for_the_creates_in_flight() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let bulk = Arc::new(bulk(fixture.database.url()));
        fixture.trigger("IF NEW.name = 'slow' THEN PERFORM pg_advisory_xact_lock(1); END IF").await;
        fixture.observer.run("SELECT pg_advisory_lock(1)").await;
        let create = fixture.begin("slow");
        fixture.observer.wait_for_locks("advisory", 1).await;
        let batch = tokio::spawn(async move { bulk.add_pets(stored_pets([2, 3])).await });
        fixture.observer.wait_for_locks("relation", 1).await;
        fixture.observer.run("SELECT pg_advisory_unlock(1)").await;
        assert_eq!(create.await.expect("added").id().get(), 2);
        let refused = batch.await.expect("no panic");
        assert!(matches!(refused, Ok(false)), "{refused:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_that_begin_during_a_batch_get_greater_ids() {
    let fixture = Fixture::new().await;
    let bulk = Arc::new(bulk(fixture.database.url()));
    // The batch waits for this transaction, and the create for the batch.
    let locking = SqlSession::of(&fixture.database).await;
    locking.run("BEGIN; LOCK TABLE pets IN ROW EXCLUSIVE MODE").await;
    let batch = tokio::spawn(async move { bulk.add_pets(stored_pets([50])).await });
    fixture.observer.wait_for_locks("relation", 1).await;
    let mut create = fixture.begin("Rex");
    fixture.observer.wait_for_locks("relation", 2).await;
    assert!((&mut create).now_or_never().is_none());
    locking.unlock().await;
    assert_eq!(create.await.expect("added").id().get(), 51);
    batch.await.expect("no panic").expect("added");
}
