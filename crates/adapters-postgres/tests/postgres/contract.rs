//! The contracts of the ports, and the results of the memory adapter.

use animal_store_adapter_kit::{KeyDatabase, test_support::SqlKeys};
use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::{
    bulk_storage_contract, pet_repository_contract,
    test_support::{assert_same_results, contract::bulk_storage::BulkAccess},
};
use tokio::runtime::Builder;

use crate::{bulk::bulk, keys::new_keys, prelude::*};

/// An empty repository with this retention of idempotency keys, and what it needs until the test ends.
async fn repository(retention: Duration) -> (Arc<dyn PetRepository>, (Store, PgDatabase)) {
    let database = PgDatabase::new();
    let settings = PostgresSettings {
        idempotency_retention: retention,
        ..settings()
    };
    let store = Store::at(database.url(), settings).await;
    (Arc::clone(&store.repository) as _, (store, database))
}

pet_repository_contract!(repository);

async fn bulk_access() -> (BulkAccess, (Store, PgDatabase)) {
    let (pets, guard) = repository(Duration::from_hours(24)).await;
    let bulk = Arc::new(bulk(guard.1.url()));
    (BulkAccess { bulk, pets }, guard)
}

bulk_storage_contract!(bulk_access);

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

#[test]
fn postgresql_and_memory_give_the_same_results_to_every_sequence_of_calls() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let database = PgDatabase::new();
    let store = runtime.block_on(Store::at(database.url(), settings()));
    let session = runtime.block_on(SqlSession::of(&database));
    assert_same_results(&runtime, &*store.repository, async || {
        session.run("TRUNCATE pets RESTART IDENTITY").await;
        MemoryPetRepository::new(settings().idempotency_retention)
    });
}
