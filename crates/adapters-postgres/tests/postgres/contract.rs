//! The contracts of the ports, and the results of the memory adapter.

use std::{sync::Arc, time::Duration};

use animal_store_adapter_kit::{ApiKeyUseRecord, KeyDatabase, test_support::SqlKeys};
use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_adapters_postgres::PgStorage;
use animal_store_app::{
    bulk_storage_contract, pet_repository_contract,
    ports::{ApiKeyDirectory, ApiKeyStore},
    test_support::{
        assert_same_results,
        contract::{
            api_key_store::Keys as StoreAccess, api_key_uses::Uses, bulk_storage::BulkAccess,
        },
        key_changes::add,
    },
};
use animal_store_test_servers::PgDatabase;
use prometheus_client::registry::Registry;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Builder;

use crate::{
    bulk::bulk,
    keys::{directory_of, new_keys},
    sql_session::client,
    store::{Store, repository, settings},
};

pet_repository_contract!(repository);

async fn bulk_access() -> (BulkAccess, (PgStorage, PgDatabase)) {
    let (pets, (storage, database)) = repository(Duration::from_hours(24)).await;
    (
        BulkAccess {
            bulk: Arc::new(bulk(database.url())),
            pets,
        },
        (storage, database),
    )
}

bulk_storage_contract!(bulk_access);

async fn directory(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, PgDatabase) {
    let (keys, database) = new_keys().await;
    for (token, number) in tokens.iter().zip(1..) {
        keys.change(
            add(&format!("key-{number}"), token.expose_secret(), None),
            "test",
        )
        .await
        .expect("added");
    }
    (Arc::new(directory_of(&keys)), database)
}

animal_store_app::api_key_directory_contract!(directory);

async fn store() -> (StoreAccess, PgDatabase) {
    let (keys, database) = new_keys().await;
    (
        StoreAccess {
            directory: Arc::new(directory_of(&keys)),
            store: Arc::new(keys),
        },
        database,
    )
}

animal_store_app::api_key_store_contract!(store);

async fn sql_keys() -> (SqlKeys<impl KeyDatabase>, Arc<PgDatabase>) {
    let (store, database) = new_keys().await;
    let database = Arc::new(database);
    let writer = Arc::clone(&database);
    let reader = Arc::clone(&database);
    let keys = SqlKeys {
        store,
        execute: Box::new(move |statements| _ = writer.sql(statements)),
        number: Box::new(move |query| reader.sql(query).parse().expect("a number")),
    };
    (keys, database)
}

animal_store_adapter_kit::sql_api_key_store_contract!(sql_keys);

async fn uses() -> (Uses, PgDatabase) {
    let (keys, database) = new_keys().await;
    let start = || {
        ApiKeyUseRecord::start(
            keys.clone(),
            100,
            Duration::from_millis(10),
            &mut Registry::default(),
        )
        .0
    };
    let instances = [(); 2].map(|()| Arc::new(start()) as Arc<_>);
    (
        Uses {
            instances,
            store: Arc::new(keys),
        },
        database,
    )
}

animal_store_app::api_key_uses_contract!(uses);

#[test]
fn postgresql_and_memory_give_the_same_results_to_every_sequence_of_calls() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let database = PgDatabase::new();
    let (store, client) = runtime.block_on(async {
        (
            Store::at(database.url(), settings()).await,
            client(database.url()).await,
        )
    });

    assert_same_results(&runtime, &*store.repository, async || {
        client
            .batch_execute("TRUNCATE pets RESTART IDENTITY")
            .await
            .expect("an empty table");
        MemoryPetRepository::new(settings().idempotency_retention)
    });
}
