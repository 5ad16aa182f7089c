//! Creates that share a commit, and the queue in front of them.

use diesel::SqliteConnection;
use tokio::task::JoinHandle;

use crate::{prelude::*, store::AddResult};

/// Starts creates. They are in the queue when this returns, because the runtime has one thread.
pub(crate) async fn begin(
    store: &Store,
    names: impl IntoIterator<Item: AsRef<str>>,
) -> Vec<JoinHandle<AddResult>> {
    let mut creates = Vec::new();
    for name in names {
        creates.push(tokio::spawn(store.try_add(name.as_ref())));
        tokio::task::yield_now().await;
    }
    creates
}

/// The outcomes of creates that wait for this lock.
pub(crate) async fn release(
    lock: SqliteConnection,
    creates: Vec<JoinHandle<AddResult>>,
) -> Vec<AddResult> {
    drop(lock);
    let mut outcomes = Vec::new();
    for create in creates {
        outcomes.push(create.await.expect("no panic"));
    }
    outcomes
}

#[tokio::test]
async fn requests_that_wait_for_a_commit_share_the_next_one() {
    let store = Store::new();
    let lock = store.lock();
    let adds = begin(&store, (0..500).map(|number| number.to_string())).await;
    let added = release(lock, adds).await.into_iter();
    let ids = added.map(|added| added.expect("added").id().get());
    assert!(ids.eq(1..=500), "ids ascend in the order of the requests");
    let batches = store.metric("storage_batch_duration_seconds_count{kind=\"create\"}");
    assert_eq!(batches, 1);
}

#[tokio::test]
async fn a_full_queue_refuses_requests() {
    let store = Store::with(SqliteSettings {
        max_waiting_creates: 2,
        ..settings()
    });
    let lock = store.lock();
    let waiting = begin(&store, ["one", "two"]).await;
    assert_fails(store.try_add("refused").await, OVERLOADED);
    assert_eq!(store.failures("overloaded"), 1);
    release(lock, waiting).await;
    assert_eq!(store.names().await, ["one", "two"]);
}

/// The wait of the writer for the lock is longer.
#[tokio::test]
async fn a_request_whose_timeout_passes_in_the_queue_is_not_stored() {
    let (folder, path) = new_path();
    let file = open(&path);
    let lock = sql::lock(&path);
    let settings_of_store = SqliteSettings {
        timeout: Duration::from_millis(300),
        ..settings()
    };
    let store = Store::over(file, settings_of_store);
    assert_fails(store.try_add("late").await, TIMED_OUT);
    drop(lock);
    store.close().await;
    let store = Store::at(folder);
    store.add("later").await;
    assert_eq!(store.names().await, ["later"]);
}

#[tokio::test]
async fn the_storage_ends_after_every_queued_create_has_its_outcome() {
    let store = Store::new();
    let lock = store.lock();
    let adds = begin(&store, (0..9).map(|number| number.to_string())).await;
    let end = tokio::spawn(store.close());
    for added in release(lock, adds).await {
        added.expect("added");
    }
    let folder = end.await.expect("ended");
    assert_eq!(Store::at(folder).count().await, 9);
}
