//! The contracts of the ports, and the results of the memory adapter.

use animal_store_adapter_kit::test_support::SqlKeys;
use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::test_support::{assert_same_results, contract::bulk_storage::BulkAccess};
use tokio::runtime::Builder;

use crate::{keys::new_keys, prelude::*, store::repository};

animal_store_app::pet_repository_contract!(repository);

async fn bulk_storage() -> (BulkAccess, TempDir) {
    let (pets, folder) = repository(Duration::from_hours(24)).await;
    let file = open(&path_in(&folder));
    let bulk = Arc::new(SqliteBulkStorage::new(&file));
    (BulkAccess { bulk, pets }, folder)
}

animal_store_app::bulk_storage_contract!(bulk_storage);

async fn sql_keys() -> (SqlKeys<SqliteFile>, TempDir) {
    let (store, folder) = new_keys();
    let path = path_in(&folder);
    let read = path.clone();
    let keys = SqlKeys {
        store,
        execute: Box::new(move |statements| sql::execute(&path, statements)),
        number: Box::new(move |query| sql::number(&read, query)),
    };
    (keys, folder)
}

animal_store_adapter_kit::sql_api_key_store_contract!(sql_keys);

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
        store.execute("DELETE FROM pets; DELETE FROM sqlite_sequence;");
        MemoryPetRepository::new(settings().idempotency_retention)
    });
}
