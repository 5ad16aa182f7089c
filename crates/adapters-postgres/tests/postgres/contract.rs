use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::PgStorage;
use animal_store_app::{
    bulk_storage_contract, pet_repository_contract, test_support::contract::bulk_storage::BulkAccess,
};
use animal_store_test_servers::PgDatabase;

use crate::{bulk_fixture::bulk, store::repository};

pet_repository_contract!(repository);

async fn bulk_access() -> (BulkAccess, (PgStorage, PgDatabase)) {
    let (pets, (storage, database)) = repository(Duration::from_hours(24)).await;
    (BulkAccess { bulk: Arc::new(bulk(database.url())), pets }, (storage, database))
}

bulk_storage_contract!(bulk_access);
