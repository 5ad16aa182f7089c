mod interruptions;
mod refusals;

use std::time::{Duration, SystemTime};

use super::*;
use crate::{
    ApiKeyId, IdempotencyKey, PetDigest,
    ports::{AddPet, IdempotencyRecord, PetRepository},
    test_support::{MemoryBulkStorage, bulk_pets, new_pet},
    transfer::test_observer::TestObserver,
};

/// Number of pets of a page.
const SIZE: i64 = (PAGE_SIZE as u64).cast_signed();

struct Stores {
    source: Arc<MemoryBulkStorage>,
    target: Arc<MemoryBulkStorage>,
    observer: TestObserver,
}

impl Stores {
    async fn new(source: impl IntoIterator<Item = i64>, target: impl IntoIterator<Item = i64>) -> Self {
        let stores = Self { source: Arc::default(), target: Arc::default(), observer: TestObserver::default() };
        stores.source.add_pets(bulk_pets(source)).await.unwrap();
        stores.target.add_pets(bulk_pets(target)).await.unwrap();
        stores
    }

    async fn copy(&mut self) -> Result<CopySummary, TransferError> {
        CopyStorage::new(self.source.clone(), self.target.clone()).execute(&mut self.observer).await
    }
}

async fn pets(storage: &MemoryBulkStorage) -> Vec<StoredPet> {
    storage.snapshot().await.unwrap().pets(None, usize::MAX).await.unwrap()
}

async fn records(storage: &MemoryBulkStorage) -> Vec<IdempotencyRecord> {
    storage.snapshot().await.unwrap().idempotency_records(None, usize::MAX).await.unwrap()
}

#[tokio::test]
async fn a_copy_has_the_pets_of_the_source_with_ids_and_creation_times() {
    let size = SIZE;
    for count in [0, 1, size - 1, size, size + 1, 2 * size] {
        let mut stores = Stores::new((1..=count).map(|id| id * 3), []).await;
        let summary = stores.copy().await.unwrap();
        assert_eq!((summary.pets, summary.added), (count.unsigned_abs(), count.unsigned_abs()));
        assert!(summary.digest.is_some());
        assert_eq!(pets(&stores.target).await, pets(&stores.source).await);
        let next = stores.target.add(AddPet::new(new_pet())).await.unwrap().pet.id();
        assert!(next.get() > count * 3, "{next:?}");
    }
}

#[tokio::test]
async fn a_copy_has_the_records_of_idempotency_keys_that_have_not_expired() {
    let mut stores = Stores::new([1], []).await;
    let record = |text: &str, hours: u64| IdempotencyRecord {
        key: IdempotencyKey::new(ApiKeyId::new("key"), text),
        pet_digest: PetDigest::from_pet(&new_pet()),
        pet_id: PetId::parse(1).unwrap(),
        expires_at: SystemTime::UNIX_EPOCH + Duration::from_hours(hours),
    };
    let valid = (0..=PAGE_SIZE).map(|number| record(&number.to_string(), 24 * 365 * 1_000));
    stores.source.add_idempotency_records(valid.chain([record("expired", 1)]).collect()).await.unwrap();

    assert_eq!(stores.copy().await.unwrap().idempotency_records, PAGE_SIZE as u64 + 1);
    assert_eq!(records(&stores.target).await, records(&stores.source).await);
}

#[tokio::test]
async fn a_copy_of_records_stops_after_a_page_and_can_be_repeated() {
    let mut stores = Stores::new([], []).await;
    let record = |number: usize| IdempotencyRecord {
        key: IdempotencyKey::new(ApiKeyId::new("key"), &number.to_string()),
        pet_digest: PetDigest::from_pet(&new_pet()),
        pet_id: PetId::parse(1).unwrap(),
        expires_at: SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 1_000),
    };
    stores.source.add_idempotency_records((0..=2 * PAGE_SIZE).map(record).collect()).await.unwrap();
    stores.observer = TestObserver::stopping(TransferPass::Transfer, 0);

    let stopped = stores.copy().await.unwrap();
    assert_eq!((stopped.idempotency_records, stopped.stopped), (PAGE_SIZE as u64, true));
    assert_eq!(records(&stores.target).await.len(), PAGE_SIZE);

    stores.observer = TestObserver::default();
    assert_eq!(stores.copy().await.unwrap().idempotency_records, 2 * PAGE_SIZE as u64 + 1);
    assert_eq!(records(&stores.target).await, records(&stores.source).await);
}

#[tokio::test]
async fn a_copy_without_verification_reads_neither_side_again() {
    let mut stores = Stores::new([1, 3], []).await;
    let copy = CopyStorage::new(stores.source.clone(), stores.target.clone()).without_verification();
    let summary = copy.execute(&mut stores.observer).await.unwrap();
    assert_eq!((summary.added, summary.digest, summary.stopped), (2, None, false));
    let passes: Vec<_> = stores.observer.passes.iter().map(|(pass, _)| *pass).collect();
    assert_eq!(passes, [TransferPass::Check, TransferPass::Transfer]);
}

#[tokio::test]
async fn the_observer_sees_each_pass_with_the_number_of_pets() {
    let size = PAGE_SIZE as u64;
    let mut stores = Stores::new(1..=SIZE + 1, []).await;
    stores.copy().await.unwrap();
    assert_eq!(
        stores.observer.passes,
        [
            (TransferPass::Check, None),
            (TransferPass::Transfer, Some(size + 1)),
            (TransferPass::Verification, Some(size + 1)),
            (TransferPass::Verification, Some(size + 1)),
        ]
    );
    assert_eq!(stores.observer.advanced, [size, size, size + 1, size, size + 1, size, size + 1]);
}
