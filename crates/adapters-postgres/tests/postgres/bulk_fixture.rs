//! Content of a database, in bulk.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_adapters_postgres::{PgBulkStorage, PostgresSettings};
use animal_store_app::{
    ApiKeyId, IdempotencyKey, PetDigest,
    ports::{
        BulkPet, BulkStorage, BulkStorageError, IdempotencyRecord, ImportProgress, ImportSource, ImportStep, PetBatch,
        StoredPet,
    },
    test_support::pet_named,
};
use animal_store_domain::{CreationTime, PetId};

use crate::store::{endpoint, settings};

pub(crate) fn bulk(url: &str) -> PgBulkStorage {
    bulk_with(url, settings())
}

pub(crate) fn bulk_with(url: &str, settings: PostgresSettings) -> PgBulkStorage {
    PgBulkStorage::new(endpoint(url), settings)
}

pub(crate) fn id(id: i64) -> PetId {
    PetId::parse(id).expect("an id")
}

pub(crate) fn with_id(number: i64, name: &str) -> BulkPet {
    BulkPet { id: Some(id(number)), ..without_id(name) }
}

pub(crate) fn without_id(name: &str) -> BulkPet {
    BulkPet { id: None, pet: pet_named(name), created_at: None }
}

pub(crate) fn created(micros: i64, pet: BulkPet) -> BulkPet {
    BulkPet { created_at: Some(CreationTime::parse(micros).expect("a time")), ..pet }
}

pub(crate) const fn batch(pets: Vec<BulkPet>) -> PetBatch {
    PetBatch { pets, refuse_taken_ids: false, step: None }
}

pub(crate) const SOURCE: ImportSource = ImportSource([7; 32]);

pub(crate) const fn progress(lines: u64) -> ImportProgress {
    ImportProgress { lines, digest: [1; 32], finished: false }
}

/// The step to this number of lines.
pub(crate) fn step(from: Option<u64>, to: u64) -> ImportStep {
    ImportStep { source: SOURCE, from: from.map(progress), to: progress(to) }
}

/// All pets, read in pages of this size.
pub(crate) async fn pets(bulk: &dyn BulkStorage, page: usize) -> Result<Vec<StoredPet>, BulkStorageError> {
    let mut snapshot = bulk.snapshot().await?;
    let mut pets: Vec<StoredPet> = Vec::new();
    loop {
        let after = pets.last().map(|stored| stored.pet.id());
        let more = snapshot.pets(after, page).await?;
        let is_last = more.len() < page;
        pets.extend(more);
        if is_last {
            return Ok(pets);
        }
    }
}

pub(crate) fn record(api_key: &str, text: &str, pet_id: i64, expires_in: Duration) -> IdempotencyRecord {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970") + expires_in;
    IdempotencyRecord {
        key: IdempotencyKey::new(ApiKeyId::new(api_key), text),
        pet_digest: PetDigest::from_pet(&pet_named("Rex")),
        pet_id: id(pet_id),
        expires_at: UNIX_EPOCH + Duration::from_millis(u64::try_from(now.as_millis()).expect("a time")),
    }
}
