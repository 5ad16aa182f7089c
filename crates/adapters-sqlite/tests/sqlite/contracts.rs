//! The contracts of the ports, and the results of the memory adapter.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_adapters_sqlite::SqliteBulkStorage;
use animal_store_app::{
    ports::ApiKeyDirectory,
    test_support::{
        assert_same_results,
        contract::{
            api_key_store::Keys as StoreAccess, api_key_uses::Uses, bulk_storage::BulkAccess,
        },
    },
};
use secrecy::{ExposeSecret, SecretString};
use tempfile::TempDir;
use tokio::runtime::Builder;

use crate::{
    keys_support::Keys,
    sql,
    store::{Store, open, repository, settings},
};

animal_store_app::pet_repository_contract!(repository);

async fn bulk_storage() -> (BulkAccess, TempDir) {
    let (pets, folder) = repository(Duration::from_hours(24)).await;
    let file = open(&folder.path().join("pets.db"));
    (
        BulkAccess {
            bulk: Arc::new(SqliteBulkStorage::new(&file)),
            pets,
        },
        folder,
    )
}

animal_store_app::bulk_storage_contract!(bulk_storage);

async fn directory(tokens: Vec<SecretString>) -> (Arc<dyn ApiKeyDirectory>, Keys) {
    let keys = Keys::new();
    for (token, number) in tokens.iter().zip(1..) {
        keys.add(&format!("key-{number}"), token.expose_secret())
            .await;
    }
    (Arc::new(keys.directory()), keys)
}

animal_store_app::api_key_directory_contract!(directory);

async fn store() -> (StoreAccess, TempDir) {
    let keys = Keys::new();
    (
        StoreAccess {
            directory: Arc::new(keys.directory()),
            store: Arc::new(keys.store),
        },
        keys.folder,
    )
}

animal_store_app::api_key_store_contract!(store);

async fn uses() -> (Uses, TempDir) {
    let keys = Keys::new();
    let instances = [(); 2].map(|()| Arc::new(keys.uses(Duration::from_millis(10)).0) as Arc<_>);
    (
        Uses {
            instances,
            store: Arc::new(keys.store),
        },
        keys.folder,
    )
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
