//! The contracts of the ports, and the results of the memory adapter.

use animal_store_adapter_kit::{ApiKeyUseRecord, test_support::SqlKeys};
use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::{
    ports::ApiKeyDirectory,
    test_support::{
        assert_same_results,
        contract::{api_key_store::Keys, api_key_uses::Uses, bulk_storage::BulkAccess},
    },
};
use prometheus_client::registry::Registry;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Builder;

use crate::{
    keys::{directory_of, new_keys},
    prelude::*,
    store::repository,
};

animal_store_app::pet_repository_contract!(repository);

async fn bulk_storage() -> (BulkAccess, TempDir) {
    let (pets, folder) = repository(Duration::from_hours(24)).await;
    let file = open(&folder.path().join("pets.db"));
    let bulk = Arc::new(SqliteBulkStorage::new(&file));
    (BulkAccess { bulk, pets }, folder)
}

animal_store_app::bulk_storage_contract!(bulk_storage);

async fn directory(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, TempDir) {
    let (keys, folder) = new_keys();
    for (token, number) in tokens.iter().zip(1..) {
        let add = key_changes::add(&format!("key-{number}"), token.expose_secret(), None);
        keys.change(add, "test").await.expect("added");
    }
    (Arc::new(directory_of(&keys)), folder)
}

animal_store_app::api_key_directory_contract!(directory);

async fn store() -> (Keys, TempDir) {
    let (store, folder) = new_keys();
    let directory = Arc::new(directory_of(&store));
    let store = Arc::new(store);
    (Keys { directory, store }, folder)
}

animal_store_app::api_key_store_contract!(store);

async fn sql_keys() -> (SqlKeys<SqliteFile>, TempDir) {
    let (store, folder) = new_keys();
    let path = folder.path().join("pets.db");
    let read = path.clone();
    let keys = SqlKeys {
        store,
        execute: Box::new(move |statements| sql::execute(&path, statements)),
        number: Box::new(move |query| sql::number(&read, query)),
    };
    (keys, folder)
}

animal_store_adapter_kit::sql_api_key_store_contract!(sql_keys);

async fn uses() -> (Uses, TempDir) {
    let (store, folder) = new_keys();
    let interval = Duration::from_millis(10);
    let instances = [(); 2].map(|()| {
        let registry = &mut Registry::default();
        Arc::new(ApiKeyUseRecord::start(store.clone(), 100, interval, registry).0) as Arc<_>
    });
    let store = Arc::new(store);
    (Uses { instances, store }, folder)
}

animal_store_app::api_key_uses_contract!(uses);

#[test]
fn sqlite_and_memory_give_the_same_results_to_every_sequence_of_calls() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let _guard = runtime.enter();
    let store = Store::new();

    assert_same_results(&runtime, &*store.repository, async || {
        sql::execute(
            &store.path(),
            "DELETE FROM pets; DELETE FROM sqlite_sequence;",
        );
        MemoryPetRepository::new(settings().idempotency_retention)
    });
}
