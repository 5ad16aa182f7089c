//! The contract of [`BulkStorage`] and [`StorageSnapshot`]. Each rule gets an empty storage.
#![expect(clippy::missing_panics_doc, reason = "a rule panics if the adapter breaks it")]

mod additions;
mod idempotency_records;
mod imports;
mod snapshots;

use std::sync::Arc;

use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetId, PetName, PetStatus};

pub use self::{additions::*, idempotency_records::*, imports::*, snapshots::*};
use crate::{
    ports::{AddPet, AddedBulkPet, BulkPet, BulkStorage, PetBatch, PetRepository, StorageSnapshot, StoredPet},
    test_support::pet_named,
};

/// Writes one test for each rule of the contract. `setup` is an async function that returns [`BulkAccess`] to an empty
/// storage, and a guard that is dropped after the test. The retention of idempotency keys is 24 hours.
#[macro_export]
macro_rules! bulk_storage_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            bulk_storage, $setup();
            an_empty_storage_has_an_empty_snapshot,
            pets_are_returned_exactly_as_they_were_added,
            a_repository_finds_the_pets_of_a_batch,
            a_pet_without_an_id_gets_the_next_one,
            a_pet_without_a_creation_time_is_created_now,
            a_large_batch_is_added_at_once,
            a_pet_that_exists_is_not_added_again,
            a_taken_id_keeps_its_pet,
            a_taken_id_refuses_the_batch_if_the_batch_says_so,
            the_next_id_is_greater_than_every_id_of_a_batch,
            concurrent_creates_and_batches_never_share_an_id,
            pages_of_a_snapshot_are_in_order_and_limited,
            a_snapshot_does_not_change,
            a_snapshot_contains_pets_of_the_repository,
            a_batch_records_the_progress_of_its_import,
            a_batch_without_pets_records_its_progress,
            another_progress_than_the_recorded_one_refuses_the_batch,
            a_refused_batch_records_no_progress,
            a_finished_import_keeps_its_progress,
            idempotency_records_are_returned_exactly_and_in_order,
            a_record_with_a_key_that_exists_changes_nothing,
            an_expired_record_is_not_returned,
            an_added_record_replays_its_pet,
            a_snapshot_contains_records_of_the_repository,
        );
    };
}

/// Bulk access to a storage, and a repository over the same storage.
pub struct BulkAccess {
    /// Reads and writes in bulk.
    pub bulk: Arc<dyn BulkStorage>,
    /// Creates and finds pets, as the service does.
    pub pets: Arc<dyn PetRepository>,
}

/// 2026-11-22T17:00:00.123456Z in microseconds.
const CREATED: i64 = 1_795_366_800_123_456;

impl BulkAccess {
    async fn add(&self, pets: impl IntoIterator<Item = BulkPet>) -> Vec<AddedBulkPet> {
        self.bulk.add_pets(batch(pets)).await.expect("add_pets")
    }

    async fn create(&self, name: &str) -> Pet {
        self.pets.add(AddPet::new(pet_named(name))).await.expect("add").pet
    }

    async fn snapshot(&self) -> Box<dyn StorageSnapshot> {
        self.bulk.snapshot().await.expect("snapshot")
    }

    /// Returns all pets in a new snapshot.
    async fn all(&self) -> Vec<StoredPet> {
        all(&mut *self.snapshot().await).await
    }

    async fn ids(&self) -> Vec<i64> {
        self.all().await.iter().map(|stored| stored.pet.id().get()).collect()
    }
}

async fn all(snapshot: &mut dyn StorageSnapshot) -> Vec<StoredPet> {
    snapshot.pets(None, 100_000).await.expect("pets")
}

fn id(id: i64) -> PetId {
    PetId::parse(id).expect("1 or greater")
}

fn time(micros: i64) -> CreationTime {
    CreationTime::parse(micros).expect("a valid time")
}

fn bulk_pet(id: impl Into<Option<i64>>, pet: NewPet) -> BulkPet {
    BulkPet { id: id.into().map(self::id), pet, created_at: Some(time(CREATED)) }
}

/// Returns a pet named Rex.
fn rex(id: impl Into<Option<i64>>) -> BulkPet {
    bulk_pet(id, pet_named("Rex"))
}

fn batch(pets: impl IntoIterator<Item = BulkPet>) -> PetBatch {
    PetBatch { pets: pets.into_iter().collect(), refuse_taken_ids: false, step: None }
}

fn stored(bulk: &BulkPet) -> StoredPet {
    let id = bulk.id.expect("a pet with an id");
    StoredPet { pet: Pet::new(id, bulk.pet.clone()), created_at: bulk.created_at.expect("a creation time") }
}

/// Pets with extreme values of each member, in ascending order of id.
fn various() -> Vec<BulkPet> {
    let names =
        ["Rex", " Rex ", "'; DROP TABLE pets; --", "\\N", "\\\"a,b\"", "e\u{301}", "\u{feff}x", "🐈\u{2028}", "NULL"];
    let longest = ["x", "🐈"].map(|character| character.repeat(PetName::MAX_CHARS));
    let names = names.map(str::to_owned).into_iter().chain(longest);
    let statuses = [None, Some(PetStatus::Available), Some(PetStatus::Pending), Some(PetStatus::Sold)];
    let categories = [i64::MIN, -1, 0, 1, i64::MAX];
    let micros = [0, 1, 999_999, CREATED, 253_402_300_799_999_999];
    let ids = (1..).map(|n: i64| n * n * n * 1_000_000_007 - 1_000_000_006);
    names
        .zip(ids)
        .enumerate()
        .map(|(index, (name, id))| {
            let name = PetName::parse(&name).expect("a valid name");
            let pet = NewPet::new(name, CategoryId::new(categories[index % categories.len()]));
            let created_at = Some(time(micros[index % micros.len()]));
            BulkPet { id: Some(self::id(id)), pet: pet.with_status(statuses[index % statuses.len()]), created_at }
        })
        .collect()
}
