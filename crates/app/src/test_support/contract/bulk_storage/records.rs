//! Records of idempotency keys.

use std::time::{Duration, SystemTime};

use animal_store_domain::Pet;

use super::{BulkAccess, id};
use crate::{
    IdempotencyKey, PetDigest,
    ports::{AddPet, AddPetError, IdempotencyRecord, StoredPet},
    test_support::{api_key_id, contract::whole_second, new_pet, pet_named, stored_pet},
};

impl BulkAccess {
    /// The ids of the pets of all records, in ascending order.
    async fn recorded_pets(&self) -> Vec<i64> {
        let records = self.records().await;
        let mut ids: Vec<_> = records.iter().map(|record| record.pet_id.get()).collect();
        ids.sort_unstable();
        ids
    }
}

fn key(api_key: &str, text: &str) -> IdempotencyKey {
    IdempotencyKey::new(api_key_id(api_key), text)
}

/// Returns the record of a pet named Rex with this id, which expires in an hour.
fn record(key: IdempotencyKey, pet_id: i64) -> IdempotencyRecord {
    let in_an_hour = whole_second(SystemTime::now() + Duration::from_hours(1));
    IdempotencyRecord {
        key,
        pet_digest: PetDigest::from_pet(&pet_named("Rex")),
        pet_id: id(pet_id),
        expires_at: in_an_hour + Duration::from_millis(123),
    }
}

/// They are ordered by API key and digest, and a page may begin at any key.
pub async fn idempotency_records_are_returned_exactly_and_in_order(access: BulkAccess) {
    let mut records: Vec<_> = (1..=9)
        .map(|pet| record(key(["b", "a", "c"][pet % 3], &pet.to_string()), 9))
        .collect();
    access.add_records(&records).await;
    records.sort_by(|one, other| one.key.cmp(&other.key));
    assert_eq!(access.records().await, records);
    let snapshot = access.snapshot().await;
    let page = snapshot
        .idempotency_records(Some(records[2].key.clone()), 4)
        .await
        .expect("idempotency_records");
    assert_eq!(page, records[3..7]);
}

/// The first record stays, and the others of the batch are added.
pub async fn a_record_with_a_key_that_exists_changes_nothing(access: BulkAccess) {
    access.add_records(&[record(key("a", "1"), 1)]).await;
    let batch = [record(key("a", "1"), 2), record(key("a", "2"), 3)];
    access.add_records(&batch).await;
    assert_eq!(access.recorded_pets().await, [1, 3]);
}

/// A later record may have the same key.
pub async fn an_expired_record_is_not_returned_and_its_key_is_free(access: BulkAccess) {
    let expired = IdempotencyRecord {
        expires_at: SystemTime::now() - Duration::from_hours(1),
        ..record(key("a", "1"), 1)
    };
    let batch = [expired, record(key("a", "2"), 2)];
    access.add_records(&batch).await;
    assert_eq!(access.recorded_pets().await, [2]);
    access.add_records(&[record(key("a", "1"), 3)]).await;
    assert_eq!(access.recorded_pets().await, [2, 3]);
}

/// Another pet with the same key is refused.
pub async fn an_added_record_replays_its_pet(access: BulkAccess) {
    let pet = Pet::new(id(7), pet_named("Rex"));
    let stored = StoredPet {
        pet,
        ..stored_pet(7)
    };
    access.add([stored]).await;
    access.add_records(&[record(key("a", "1"), 7)]).await;
    let request = AddPet {
        pet: pet_named("Rex"),
        idempotency_key: Some(key("a", "1")),
    };
    let added = access.pets.add(request.clone()).await.expect("add");
    assert!(added.replayed && added.pet.id() == id(7), "{added:?}");

    let other = AddPet {
        pet: new_pet(),
        ..request
    };
    let refused = access.pets.add(other).await;
    let is_refused = matches!(refused, Err(AddPetError::IdempotencyMismatch));
    assert!(is_refused, "{refused:?}");
    assert_eq!(access.ids().await, [7]);
}

/// They expire after the retention.
pub async fn a_snapshot_contains_records_of_the_repository(access: BulkAccess) {
    let request = AddPet {
        pet: new_pet(),
        idempotency_key: Some(key("a", "1")),
    };
    let added = access.pets.add(request).await.expect("add");
    let records = access.records().await;
    let [record] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(record.key, key("a", "1"));
    assert_eq!(record.pet_id, added.pet.id());
    assert_eq!(record.pet_digest, PetDigest::from_pet(&new_pet()));
    let lifetime = record
        .expires_at
        .duration_since(SystemTime::now())
        .expect("in the future");
    assert!(
        lifetime.abs_diff(Duration::from_hours(24)) < Duration::from_mins(1),
        "{lifetime:?}"
    );
}
