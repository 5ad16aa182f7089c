//! Creates that share a commit, and the queue in front of them.

use std::time::Duration;

use animal_store_adapters_sqlite::SqliteSettings;
use animal_store_app::{
    ports::{AddPetError, StoreFailure},
    test_support::join_tasks,
};
use animal_store_domain::Pet;
use diesel::connection::SimpleConnection;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::{
    sql,
    store::{Store, open, settings},
};

const BATCHES: &str = "storage_batch_duration_seconds_count{kind=\"create\"}";

/// Starts creates. They are in the queue when this returns, because the runtime has one thread.
pub(crate) async fn begin(
    store: &Store,
    names: impl IntoIterator<Item = String>,
) -> Vec<JoinHandle<Result<Pet, AddPetError>>> {
    let mut creates = Vec::new();
    for name in names {
        creates.push(tokio::spawn(store.try_add(&name)));
        tokio::task::yield_now().await;
    }
    creates
}

#[tokio::test]
async fn requests_that_wait_for_a_commit_share_the_next_one() {
    let store = Store::new();
    let mut lock = sql::lock(&store.path());
    let adds = begin(&store, (0..500).map(|number| number.to_string())).await;
    lock.batch_execute("ROLLBACK").expect("rolled back");
    let added = join_tasks(adds).await.into_iter();
    let ids: Vec<_> = added
        .map(|added| added.expect("no panic").expect("added").id().get())
        .collect();
    assert_eq!(
        ids,
        (1..=500).collect::<Vec<_>>(),
        "ids ascend in the order of the requests"
    );
    assert_eq!(store.metric(BATCHES), 1);
}

#[tokio::test]
async fn a_full_queue_refuses_requests() {
    let store = Store::with(SqliteSettings {
        max_waiting_creates: 2,
        ..settings()
    });
    let mut lock = sql::lock(&store.path());
    let waiting = begin(&store, ["one", "two"].map(str::to_owned)).await;
    let refused = store.try_add("refused").await.expect_err("full");
    assert!(
        matches!(refused, AddPetError::Store(StoreFailure::Overloaded)),
        "{refused:?}"
    );
    let failures = store.metric("storage_failures_total{reason=\"overloaded\"}");
    assert_eq!(failures, 1);
    lock.batch_execute("ROLLBACK").expect("rolled back");
    join_tasks(waiting).await;
    assert_eq!(store.names().await, ["one", "two"]);
}

/// The wait of the writer for the lock is longer.
#[tokio::test]
async fn a_request_whose_timeout_passes_in_the_queue_is_not_stored() {
    let folder = TempDir::new().expect("a folder");
    let file = open(&folder.path().join("pets.db"));
    let mut lock = sql::lock(file.path());
    let store = Store::over(
        file,
        SqliteSettings {
            timeout: Duration::from_millis(300),
            ..settings()
        },
    );
    let error = store.try_add("late").await.expect_err("late");
    assert!(
        matches!(error, AddPetError::Store(StoreFailure::Timeout)),
        "{error:?}"
    );
    lock.batch_execute("ROLLBACK").expect("rolled back");
    store.close().await;
    let store = Store::at(folder, settings());
    store.add("later").await;
    assert_eq!(store.names().await, ["later"]);
}

#[tokio::test]
async fn the_storage_ends_after_every_queued_create_has_its_outcome() {
    let store = Store::new();
    let mut lock = sql::lock(&store.path());
    let adds = begin(&store, (0..9).map(|number| number.to_string())).await;
    let end = tokio::spawn(store.close());
    lock.batch_execute("ROLLBACK").expect("rolled back");
    for add in adds {
        add.await.expect("no panic").expect("added");
    }
    let folder = end.await.expect("ended");
    assert_eq!(Store::at(folder, settings()).names().await.len(), 9);
}
