//! The contracts of the ports, and the results of the memory adapter.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_adapters_postgres::PgStorage;
use animal_store_app::{
    bulk_storage_contract, pet_repository_contract,
    test_support::{assert_same_results, contract::bulk_storage::BulkAccess},
};
use animal_store_test_servers::PgDatabase;
use tokio::runtime::Builder;

use crate::{
    bulk::bulk,
    sql_session::client,
    store::{Store, repository, settings},
};

pet_repository_contract!(repository);

async fn bulk_access() -> (BulkAccess, (PgStorage, PgDatabase)) {
    let (pets, (storage, database)) = repository(Duration::from_hours(24)).await;
    (BulkAccess { bulk: Arc::new(bulk(database.url())), pets }, (storage, database))
}

bulk_storage_contract!(bulk_access);

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
