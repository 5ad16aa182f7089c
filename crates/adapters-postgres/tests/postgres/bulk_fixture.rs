//! Content of a database, in bulk.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_adapters_postgres::{PgBulkStorage, PostgresSettings};
use animal_store_app::{ApiKeyId, IdempotencyKey, PetDigest, ports::IdempotencyRecord, test_support::pet_named};
use animal_store_domain::PetId;

use crate::store::{endpoint, settings};

pub(crate) fn bulk(url: &str) -> PgBulkStorage {
    bulk_with(url, settings())
}

pub(crate) fn bulk_with(url: &str, settings: PostgresSettings) -> PgBulkStorage {
    PgBulkStorage::new(endpoint(url), settings)
}

/// The record of a create with this idempotency key.
pub(crate) fn record(text: &str, pet_id: i64, expires_in: Duration) -> IdempotencyRecord {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970") + expires_in;
    IdempotencyRecord {
        key: IdempotencyKey::new(ApiKeyId::new("shop"), text),
        pet_digest: PetDigest::from_pet(&pet_named("Rex")),
        pet_id: PetId::parse(pet_id).expect("an id"),
        expires_at: UNIX_EPOCH + Duration::from_millis(u64::try_from(now.as_millis()).expect("a time")),
    }
}
