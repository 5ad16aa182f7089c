//! The contract of [`BulkStorage`] and [`StorageSnapshot`]. Each rule gets an empty storage.

mod records;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use animal_store_domain::{CreationTime, Pet, PetId};

use super::various_pets;
use crate::{
    ports::{
        AddPet, AddPetError, BulkStorage, IdempotencyRecord, PetRepository, StorageSnapshot,
        StoreFailure, StoredPet,
    },
    test_support::{pet_named, stored_pets},
};

pub use self::records::*;

/// Writes one test for each rule of the contract. `setup` is an async function that returns [`BulkAccess`] to an empty
/// storage, and a guard that is dropped after the test. The retention of idempotency keys is 24 hours.
#[macro_export]
macro_rules! bulk_storage_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            bulk_storage, $setup();
            pets_are_returned_exactly_as_they_were_added,
            a_large_batch_is_added_at_once,
            a_taken_id_refuses_the_batch,
            the_next_id_is_greater_than_every_id_of_a_batch,
            the_next_id_is_greater_than_the_ids_that_were_skipped,
            ids_that_were_all_given_out_can_be_skipped_again,
            pages_of_a_snapshot_are_in_order_and_limited,
            a_snapshot_does_not_change,
            a_snapshot_contains_pets_of_the_repository,
            idempotency_records_are_returned_exactly_and_in_order,
            a_record_with_a_key_that_exists_changes_nothing,
            an_expired_record_is_not_returned_and_its_key_is_free,
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

impl BulkAccess {
    async fn add(&self, pets: impl IntoIterator<Item = StoredPet>) {
        let pets = pets.into_iter().collect();
        self.bulk.add_pets(pets).await.expect("add_pets");
    }

    async fn add_records(&self, records: &[IdempotencyRecord]) {
        let added = self.bulk.add_idempotency_records(records.to_vec()).await;
        added.expect("add_idempotency_records");
    }

    async fn create(&self, name: &str) -> Pet {
        let added = self.pets.add(AddPet::new(pet_named(name))).await;
        added.expect("add").pet
    }

    async fn snapshot(&self) -> Box<dyn StorageSnapshot> {
        self.bulk.snapshot().await.expect("snapshot")
    }

    /// Returns all pets in a new snapshot.
    async fn all(&self) -> Vec<StoredPet> {
        let pets = self.snapshot().await.pets(None, 100_000).await;
        pets.expect("pets")
    }

    async fn ids(&self) -> Vec<i64> {
        let all = self.all().await;
        all.iter().map(|stored| stored.pet.id().get()).collect()
    }

    async fn last_id(&self) -> Option<PetId> {
        self.snapshot().await.last_id().await.expect("last_id")
    }

    async fn skip_ids(&self, last: i64) {
        self.bulk.skip_ids(id(last)).await.expect("skip_ids");
    }

    async fn records(&self) -> Vec<IdempotencyRecord> {
        let records = self.snapshot().await.idempotency_records(None, 100).await;
        records.expect("idempotency_records")
    }
}

const MINUTE: Duration = Duration::from_mins(1);

fn id(id: i64) -> PetId {
    PetId::parse(id).expect("1 or greater")
}

/// Various pets and creation times, in ascending order of id.
fn various() -> Vec<StoredPet> {
    let micros = [
        0,
        1,
        999_999,
        1_795_366_800_123_456,
        253_402_300_799_999_999,
    ]
    .into_iter()
    .cycle();
    let pets = (0..)
        .zip(various_pets())
        .zip(micros)
        .map(|((number, pet), micros)| StoredPet {
            pet: Pet::new(id(number * number * number * 1_000_000_007 + 1), pet),
            created_at: CreationTime::parse(micros).expect("a valid time"),
        });
    pets.collect()
}

/// This holds for every member and for the creation time, in any order of the batch. A batch is part of the catalogue
/// that the service serves.
pub async fn pets_are_returned_exactly_as_they_were_added(access: BulkAccess) {
    access.bulk.check_writable().await.expect("writable");
    assert_eq!(access.all().await, []);
    assert_eq!(access.records().await, []);
    access.add(various().into_iter().rev()).await;
    assert_eq!(access.all().await, various());
    let expected: Vec<_> = various().into_iter().map(|stored| stored.pet).collect();
    assert_eq!(
        access.pets.list(None, None, 100).await.expect("list"),
        expected
    );
    for pet in expected {
        assert_eq!(access.pets.find(pet.id()).await.expect("find"), Some(pet));
    }
}

/// A batch of 10,000 pets is not limited by the number of parameters of a statement.
pub async fn a_large_batch_is_added_at_once(access: BulkAccess) {
    access.add(stored_pets(1..=10_000)).await;
    assert_eq!(access.ids().await, (1..=10_000).collect::<Vec<_>>());
}

/// Nothing of the batch is added, even if the pet with the id is the same.
pub async fn a_taken_id_refuses_the_batch(access: BulkAccess) {
    access.add(stored_pets([2])).await;
    let before = access.all().await;
    let refused = access.bulk.add_pets(stored_pets([1, 2, 3])).await;
    assert!(matches!(refused, Ok(false)), "{refused:?}");
    assert_eq!(access.all().await, before);
}

/// A batch with lower ids changes nothing about that.
pub async fn the_next_id_is_greater_than_every_id_of_a_batch(access: BulkAccess) {
    access.create("Rex").await;
    access.add(stored_pets([1_000_000, 500])).await;
    access.add(stored_pets([7])).await;
    let next = access.create("Rex").await.id();
    assert!(next > id(1_000_000), "{next:?}");
}

/// Skipping a smaller id has no effect. A snapshot returns the greatest id of all that were created, skipped or added.
pub async fn the_next_id_is_greater_than_the_ids_that_were_skipped(access: BulkAccess) {
    assert_eq!(access.last_id().await, None);
    let created = access.create("Rex").await.id();
    assert_eq!(access.last_id().await, Some(created));
    access.skip_ids(1000).await;
    access.skip_ids(7).await;
    assert_eq!(access.last_id().await, Some(id(1000)));
    assert_eq!(access.create("Rex").await.id(), id(1001));
    access.add(stored_pets([2000])).await;
    assert_eq!(access.last_id().await, Some(id(2000)));
}

/// No pet can be created then.
pub async fn ids_that_were_all_given_out_can_be_skipped_again(access: BulkAccess) {
    for _ in 0..2 {
        access.skip_ids(i64::MAX).await;
        assert_eq!(access.last_id().await, Some(id(i64::MAX)));
    }
    let refused = access.pets.add(AddPet::new(pet_named("Rex"))).await;
    assert!(
        matches!(
            refused,
            Err(AddPetError::Store(StoreFailure::Unavailable(_)))
        ),
        "{refused:?}"
    );
}

/// A page may begin at any id, also before the last page.
pub async fn pages_of_a_snapshot_are_in_order_and_limited(access: BulkAccess) {
    access.add(stored_pets([9, 2, 5, 3, 4])).await;
    let snapshot = access.snapshot().await;
    for (after, limit, expected) in [
        (None, 2, &[2, 3][..]),
        (Some(3), 2, &[4, 5]),
        (Some(9), 2, &[]),
        (Some(7), 5, &[9]),
    ] {
        let page = snapshot.pets(after.map(id), limit).await.expect("pets");
        let ids: Vec<_> = page.iter().map(|stored| stored.pet.id().get()).collect();
        assert_eq!(ids, expected, "{limit} after {after:?}");
    }
}

/// Neither batches nor creates change it, even if nothing was read before.
pub async fn a_snapshot_does_not_change(access: BulkAccess) {
    access.add(stored_pets([1, 3])).await;
    let snapshot = access.snapshot().await;
    access.add(stored_pets([2, 4])).await;
    let created = access.create("Later").await;
    for later in [100, 101] {
        let seen = snapshot.pets(None, 100).await.expect("pets");
        assert_eq!(seen, stored_pets([1, 3]));
        access.add(stored_pets([later])).await;
    }
    drop(snapshot);
    assert_eq!(
        access.ids().await,
        [1, 2, 3, 4, created.id().get(), 100, 101]
    );
}

/// The creation time is when the pet was created.
pub async fn a_snapshot_contains_pets_of_the_repository(access: BulkAccess) {
    let created = [access.create("a").await, access.create("b").await];
    let all = access.all().await;
    let pets = all.iter().map(|stored| &stored.pet);
    assert!(pets.eq(&created), "{all:?}");
    assert!(all[0].created_at <= all[1].created_at, "{all:?}");
    let micros = all[0].created_at.micros().unsigned_abs();
    let created_at = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
    let now = SystemTime::now();
    assert!(
        now - MINUTE < created_at && created_at < now + MINUTE,
        "{all:?}"
    );
}
