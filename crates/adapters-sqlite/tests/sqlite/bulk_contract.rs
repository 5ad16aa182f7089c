//! The contract of `BulkStorage`.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_sqlite::SqliteBulkStorage;
use animal_store_app::test_support::contract::bulk_storage::BulkAccess;
use tempfile::TempDir;

use crate::{bulk_support::open, store::repository};

async fn setup() -> (BulkAccess, TempDir) {
    let (pets, folder) = repository(Duration::from_hours(24)).await;
    let file = open(&folder.path().join("pets.db"));
    (BulkAccess { bulk: Arc::new(SqliteBulkStorage::new(file)), pets }, folder)
}

animal_store_app::bulk_storage_contract!(setup);
