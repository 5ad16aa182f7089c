//! The contracts of the ports, and the results of the memory adapter.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_adapters_postgres::PgStorage;
use animal_store_app::{
    api_key_directory_contract, api_key_store_contract, api_key_uses_contract, bulk_storage_contract,
    pet_repository_contract,
    ports::ApiKeyDirectory,
    test_support::{
        assert_same_results,
        contract::{api_key_store::Keys, api_key_uses::Uses, bulk_storage::BulkAccess},
    },
};
use animal_store_test_servers::PgDatabase;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Builder;

use crate::{
    bulk::bulk,
    keys_support::{KeySpace, key_store},
    sql_session::client,
    store::{Store, repository, settings},
};

pet_repository_contract!(repository);

async fn bulk_access() -> (BulkAccess, (PgStorage, PgDatabase)) {
    let (pets, (storage, database)) = repository(Duration::from_hours(24)).await;
    (BulkAccess { bulk: Arc::new(bulk(database.url())), pets }, (storage, database))
}

bulk_storage_contract!(bulk_access);

async fn directory(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, (KeySpace, PgDatabase)) {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    for (token, number) in tokens.iter().zip(1..) {
        keys.add(&format!("key-{number}"), token.expose_secret()).await;
    }
    (Arc::new(keys.directory()), (keys, database))
}

api_key_directory_contract!(directory);

async fn store() -> (Keys, (KeySpace, PgDatabase)) {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    let store = Arc::new(key_store(database.url()));
    (Keys { directory: Arc::new(keys.directory()), store }, (keys, database))
}

api_key_store_contract!(store);

async fn uses() -> (Uses, (KeySpace, PgDatabase)) {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    let instances = [(); 2].map(|()| Arc::new(keys.uses().0) as Arc<_>);
    (Uses { instances, store: Arc::new(key_store(database.url())) }, (keys, database))
}

api_key_uses_contract!(uses);

#[test]
fn postgresql_and_memory_give_the_same_results_to_every_sequence_of_calls() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let database = PgDatabase::new();
    let (store, client) =
        runtime.block_on(async { (Store::at(database.url(), settings()).await, client(database.url()).await) });

    assert_same_results(&runtime, &*store.repository, async || {
        client.batch_execute("TRUNCATE pets RESTART IDENTITY").await.expect("an empty table");
        MemoryPetRepository::new(settings().idempotency_retention)
    });
}
