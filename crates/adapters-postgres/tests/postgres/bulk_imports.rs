//! Imports by several processes, and imports that are interrupted.

use animal_store_app::ports::{BulkStorage, BulkStorageError, PetBatch};
use futures_util::future::join_all;

use crate::{
    bulk_fixture::{SOURCE, batch, bulk, step, with_id, without_id},
    explain::empty_tables,
    outcomes::eventually,
    sql_session::SqlSession,
    store::proxy_to,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_processes_that_take_the_same_step_one_succeeds() {
    let database = empty_tables().await;
    for (round, from) in [None, Some(1), Some(2)].into_iter().enumerate() {
        let processes: Vec<_> = (0..6).map(|_| bulk(database.url())).collect();
        let to = from.unwrap_or_default() + 1;
        let batch = PetBatch { step: Some(step(from, to)), ..batch(vec![without_id("Rex")]) };
        let added = join_all(processes.iter().map(|bulk| bulk.add_pets(batch.clone()))).await;
        let refused = added.iter().filter(|added| matches!(added, Err(BulkStorageError::ImportConflict))).count();
        assert_eq!((added.iter().filter(|added| added.is_ok()).count(), refused), (1, 5), "{added:?}");
        assert_eq!(database.sql("SELECT count(*) FROM pets"), (round + 1).to_string());
    }
}

/// The connection is cut one message later each time, so that every moment has its cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_interrupted_and_resumed_adds_each_pet_once() {
    let database = empty_tables().await;
    let (mut proxy, url) = proxy_to(database.url());
    let (observer, bulk) = (SqlSession::of(&database).await, bulk(&url));
    let mut cuts = 0;
    for messages in 0.. {
        let done = bulk.import_progress(SOURCE).await.expect("the progress").map(|progress| progress.lines);
        if done >= Some(5) {
            break;
        }
        let next = done.unwrap_or_default() + 1;
        let pet = if next % 2 == 0 { without_id("Rex") } else { with_id(1000 * next.cast_signed(), "Rex") };
        let held = proxy.held();
        proxy.hold_after(messages);
        let added = tokio::select! {
            added = bulk.add_pets(PetBatch { step: Some(step(done, next)), ..batch(vec![pet]) }) => added.is_ok(),
            () = eventually("the next message is held", async || proxy.held() > held) => false,
        };
        cuts += usize::from(!added);
        proxy.cut();
        proxy.heal();
        observer.wait_for_backends(0).await;
    }
    assert!(cuts > 5, "{cuts}");
    assert_eq!(observer.count("pets").await, 5);
}
