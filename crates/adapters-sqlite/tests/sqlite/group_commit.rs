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
use diesel::connection::SimpleConnection;

use crate::{
    sql,
    store::{Store, TIMEOUT, settings, wait_until},
};

const WAITING: &str = "sqlite_queue_requests{queue=\"creates\"}";

#[tokio::test]
async fn requests_that_wait_for_a_commit_share_the_next_one() {
    let store = Store::new();
    let mut lock = sql::lock(&store.path());
    let adds = join_tasks((0..500).map(|number| store.try_add(&number.to_string())));
    let unlock = async {
        wait_until("500 creates wait", async || store.metric(WAITING) >= 500.0).await;
        lock.batch_execute("ROLLBACK").expect("rolled back");
    };
    let (added, ()) = tokio::join!(adds, unlock);
    let ids: Vec<_> = added.into_iter().map(|added| added.expect("added").id().get()).collect();
    assert_eq!(ids, (1..=500).collect::<Vec<_>>(), "ids ascend in the order of the requests");
    assert!(store.metric("sqlite_commits_total") <= 2.0);
}

#[tokio::test]
async fn a_full_queue_refuses_requests() {
    let store = Store::with(SqliteSettings { max_waiting_creates: 2, ..settings() });
    let mut lock = sql::lock(&store.path());
    let waiting = tokio::spawn(join_tasks([store.try_add("one"), store.try_add("two")]));
    wait_until("2 creates wait", async || store.metric(WAITING) >= 2.0).await;
    let refused = store.try_add("refused").await.expect_err("full");
    assert!(matches!(refused, AddPetError::Store(StoreFailure::Overloaded)), "{refused:?}");
    assert!(store.metric("sqlite_queue_refused_total{queue=\"creates\"}") >= 1.0);
    lock.batch_execute("ROLLBACK").expect("rolled back");
    assert!(waiting.await.expect("no panic").iter().all(Result::is_ok));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_storage_ends_after_every_queued_create_has_its_outcome() {
    let store = Store::new();
    let mut lock = sql::lock(&store.path());
    let adds: Vec<_> = (0..9).map(|number| tokio::spawn(store.try_add(&number.to_string()))).collect();
    wait_until("9 creates wait", async || store.metric(WAITING) >= 9.0).await;
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
    wait_until("the flood began", async || flooded.metric("sqlite_commits_total") >= 3.0).await;
    for number in 0..10 {
        single.repository.add(with_key(&format!("single-{number}"))).await.expect("added");
    }
    stop.store(true, Ordering::Relaxed);
    let added: usize = flood.await.expect("no panic").into_iter().sum();
    assert_eq!(single.count().await, added + 10);
}
