//! Creates that share a commit, and the queue in front of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use animal_store_adapters_sqlite::SqliteSettings;
use animal_store_app::{
    ApiKeyId, IdempotencyKey,
    ports::{AddPet, AddPetError, PetRepository, StoreFailure},
    test_support::{join_tasks, pet_named},
};
use animal_store_domain::Pet;
use diesel::connection::SimpleConnection;
use tokio::task::JoinHandle;

use crate::{
    sql,
    store::{Store, TIMEOUT, settings, wait_until},
};

const BATCHES: &str = "storage_batch_duration_seconds_count{kind=\"create\"}";

/// Starts creates. They are in the queue when this returns, because the runtime has one thread.
async fn begin(store: &Store, names: impl IntoIterator<Item = String>) -> Vec<JoinHandle<Result<Pet, AddPetError>>> {
    let creates = names.into_iter().map(|name| tokio::spawn(store.try_add(&name))).collect();
    tokio::task::yield_now().await;
    creates
}

#[tokio::test]
async fn requests_that_wait_for_a_commit_share_the_next_one() {
    let store = Store::new();
    let mut lock = sql::lock(&store.path());
    let adds = begin(&store, (0..500).map(|number| number.to_string())).await;
    lock.batch_execute("ROLLBACK").expect("rolled back");
    let added = join_tasks(adds).await.into_iter();
    let ids: Vec<_> = added.map(|added| added.expect("no panic").expect("added").id().get()).collect();
    assert_eq!(ids, (1..=500).collect::<Vec<_>>(), "ids ascend in the order of the requests");
    assert!(store.metric(BATCHES) <= 2.0);
}

#[tokio::test]
async fn a_full_queue_refuses_requests() {
    let store = Store::with(SqliteSettings { max_waiting_creates: 2, ..settings() });
    let mut lock = sql::lock(&store.path());
    let waiting = begin(&store, ["one", "two"].map(str::to_owned)).await;
    let refused = store.try_add("refused").await.expect_err("full");
    assert!(matches!(refused, AddPetError::Store(StoreFailure::Overloaded)), "{refused:?}");
    assert!(store.metric("storage_failures_total{reason=\"overloaded\"}") >= 1.0);
    lock.batch_execute("ROLLBACK").expect("rolled back");
    assert!(join_tasks(waiting).await.iter().flatten().all(Result::is_ok));
    assert_eq!(store.names().await, ["one", "two"]);
}

#[tokio::test]
async fn a_request_whose_timeout_passes_in_the_queue_is_not_stored() {
    let timeout = Duration::from_millis(300);
    let store = Store::with(SqliteSettings { timeout, ..settings() });
    let mut lock = sql::lock(&store.path());
    let start = Instant::now();
    let error = store.try_add("late").await.expect_err("late");
    assert!(matches!(error, AddPetError::Store(_)), "{error:?}");
    assert!(start.elapsed() < TIMEOUT / 2, "{:?}", start.elapsed());
    lock.batch_execute("ROLLBACK").expect("rolled back");
    let store = Store::at(store.close().await, settings());
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

fn with_key(pet: &str) -> AddPet {
    AddPet { pet: pet_named(pet), idempotency_key: Some(IdempotencyKey::new(ApiKeyId::new("import"), pet)) }
}

/// An import and a server do so. After a batch of 1000, the next one waits already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_another_storage_is_flooded_with_creates_each_create_is_answered() {
    let flooded = Store::with(SqliteSettings { max_waiting_creates: 2000, ..settings() });
    let single = Store::on(&flooded.path(), SqliteSettings { timeout: TIMEOUT / 3, ..settings() });
    let stop = Arc::new(AtomicBool::new(false));
    let (repository, stopped) = (Arc::clone(&flooded.repository), Arc::clone(&stop));
    let flood = join_tasks((0..2000).map(move |task| {
        let (repository, stop) = (Arc::clone(&repository), Arc::clone(&stopped));
        async move {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                repository.add(with_key(&format!("{task}-{count}"))).await.expect("added");
                count += 1;
            }
            count
        }
    }));
    let flood = tokio::spawn(flood);
    wait_until("the flood began", async || flooded.metric(BATCHES) >= 3.0).await;
    for number in 0..10 {
        single.repository.add(with_key(&format!("single-{number}"))).await.expect("added");
    }
    stop.store(true, Ordering::Relaxed);
    let added: usize = flood.await.expect("no panic").into_iter().sum();
    assert_eq!(single.count().await, added + 10);
}
