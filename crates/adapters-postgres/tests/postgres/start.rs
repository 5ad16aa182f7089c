//! A database that is away when the process starts.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::{PgStorage, PostgresSettings, SchemaMode};
use animal_store_app::{
    ports::{AddPet, PetRepository, StorageError},
    test_support::new_pet,
};
use animal_store_test_servers::PostgresServer;

use crate::{
    calls::{AT_ONCE, PATIENCE, Unavailable, a_moment, comes_to_be_ready, each, not_ready, reason},
    store::{Store, endpoint, settings},
};

async fn is_away(store: &Store) {
    let start = Instant::now();
    assert_eq!(each(&store.repository, AT_ONCE).await, [Unavailable; 3]);
    assert!(not_ready(&store.storage).await.is_some());
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
}

async fn comes_up(store: &Store) {
    let start = Instant::now();
    while let Err(error) = store.repository.list(None, None, 1).await {
        assert!(matches!(error, StorageError::Unavailable(_)), "{error:?}");
        assert!(start.elapsed() < PATIENCE, "{error:?}");
        a_moment().await;
    }
    comes_to_be_ready(&store.storage).await;
    let added = store.repository.add(AddPet::new(new_pet())).await.expect("added").pet;
    assert_eq!(store.repository.find(added.id()).await.expect("found"), Some(added));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_comes_later_is_migrated_and_used() {
    let mut server = PostgresServer::start();
    server.stop();
    let start = Instant::now();
    let store = Store::at(&server.url("postgres"), PostgresSettings { required_at_start: false, ..settings() }).await;
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    is_away(&store).await;
    is_away(&store).await;

    server.start_again();
    comes_up(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_says_nothing_holds_the_start_up_for_a_while_only() {
    let server = PostgresServer::start();
    server.pause();
    let start = Instant::now();
    let settings = PostgresSettings { required_at_start: false, ..settings() };
    let store = Store::at(&server.url("postgres"), settings).await;
    assert!(start.elapsed() < Duration::from_secs(7), "{:?}", start.elapsed());
    is_away(&store).await;

    server.resume();
    comes_up(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_has_to_be_there_is_missed() {
    let mut server = PostgresServer::start();
    server.stop();
    for schema in [SchemaMode::Check, SchemaMode::Migrate] {
        let endpoint = endpoint(&server.url("postgres"));
        let started = PgStorage::start(endpoint.clone(), endpoint, PostgresSettings { schema, ..settings() }).await;
        let reason = started.map(drop).map_err(|error| reason(&error)).expect_err("nobody listens");
        assert!(reason.contains("refused"), "{reason}");
    }
}
