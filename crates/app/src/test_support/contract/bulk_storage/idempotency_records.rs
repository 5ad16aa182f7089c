//! Records of idempotency keys.

use std::time::{Duration, SystemTime};

use super::{BulkAccess, id, rex};
use crate::{
    ApiKeyId, IdempotencyKey, PetDigest,
    ports::{AddPet, AddPetError, IdempotencyRecord},
    test_support::{new_pet, pet_named},
};

fn key(api_key: &str, text: &str) -> IdempotencyKey {
    IdempotencyKey::new(ApiKeyId::new(api_key), text)
}

/// Returns a record of [`rex`] with this id, which expires after an hour.
fn record(key: IdempotencyKey, pet_id: i64) -> IdempotencyRecord {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let whole_millis = u64::try_from(now.as_millis()).expect("a short time");
    let expires_at = SystemTime::UNIX_EPOCH + Duration::from_millis(whole_millis + 3_600_000);
    IdempotencyRecord { key, pet_digest: PetDigest::from_pet(&pet_named("Rex")), pet_id: id(pet_id), expires_at }
}

impl BulkAccess {
    async fn add_records(&self, records: &[IdempotencyRecord]) {
        self.bulk.add_idempotency_records(records.to_vec()).await.expect("add_idempotency_records");
    }

    async fn records(&self, after: Option<&IdempotencyRecord>, limit: usize) -> Vec<IdempotencyRecord> {
        let after = after.map(|record| record.key.clone());
        self.snapshot().await.idempotency_records(after, limit).await.expect("idempotency_records")
    }
}

/// Keys are compared byte by byte.
pub async fn idempotency_records_are_returned_exactly_and_in_order(access: BulkAccess) {
    let keys = ["B", "a", "a-b", "a_b", "aa", "b"].iter().flat_map(|api_key| [key(api_key, "1"), key(api_key, "2")]);
    let mut records: Vec<_> = keys.zip(1..).map(|(key, pet_id)| record(key, pet_id)).collect();
    access.add_records(&records).await;
    records.sort_by(|one, other| one.key.cmp(&other.key));

    assert_eq!(access.records(None, 100).await, records);
    assert_eq!(access.records(None, 2).await, records[..2]);
    for (index, after) in records.iter().enumerate() {
        assert_eq!(access.records(Some(after), 100).await, records[index + 1..]);
    }
}

/// The other records are added.
pub async fn a_record_with_a_key_that_exists_changes_nothing(access: BulkAccess) {
    let first = record(key("a", "1"), 1);
    access.add_records(std::slice::from_ref(&first)).await;
    let mut second = record(key("a", "2"), 3);
    second.expires_at += Duration::from_secs(5);
    access.add_records(&[record(key("a", "1"), 2), second.clone()]).await;
    let mut records = access.records(None, 100).await;
    records.sort_by_key(|record| record.pet_id);
    assert_eq!(records, [first, second]);
}

/// Its key is free.
pub async fn an_expired_record_is_not_returned(access: BulkAccess) {
    let expired =
        IdempotencyRecord { expires_at: SystemTime::now() - Duration::from_hours(1), ..record(key("a", "1"), 1) };
    access.add_records(&[expired, record(key("a", "2"), 2)]).await;
    let pet_ids: Vec<_> = access.records(None, 100).await.iter().map(|record| record.pet_id).collect();
    assert_eq!(pet_ids, [id(2)]);
}

/// Another pet with the same key is refused.
pub async fn an_added_record_replays_its_pet(access: BulkAccess) {
    access.add([rex(7)]).await;
    access.add_records(&[record(key("a", "1"), 7)]).await;
    let request = AddPet { pet: pet_named("Rex"), idempotency_key: Some(key("a", "1")) };
    let added = access.pets.add(request.clone()).await.expect("add");
    assert!(added.replayed && added.pet.id() == id(7), "{added:?}");

    let other = access.pets.add(AddPet { pet: new_pet(), ..request }).await;
    assert!(matches!(other, Err(AddPetError::IdempotencyMismatch)), "{other:?}");
    assert_eq!(access.ids().await, [7]);
}

/// They expire after the retention.
pub async fn a_snapshot_contains_records_of_the_repository(access: BulkAccess) {
    let request = AddPet { pet: new_pet(), idempotency_key: Some(key("a", "1")) };
    let added = access.pets.add(request).await.expect("add");
    let records = access.records(None, 100).await;
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!((&record.key, record.pet_id), (&key("a", "1"), added.pet.id()));
    assert_eq!(record.pet_digest, PetDigest::from_pet(&new_pet()));
    let lifetime = record.expires_at.duration_since(SystemTime::now()).expect("in the future");
    assert!(lifetime.abs_diff(Duration::from_hours(24)) < Duration::from_mins(1), "{lifetime:?}");
}
