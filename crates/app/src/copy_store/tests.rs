use std::{
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime},
};

use animal_store_domain::Pet;

use super::*;
use crate::{
    ApiKeyChange, ApiKeyDigest, ApiKeyId, IdempotencyKey, NewToken, PetDigest,
    ports::{AddPet, ChangedApiKey, IdempotencyRecord, MockApiKeyStore, PetRepository, StoredPet},
    test_support::{MemoryBulkStorage, api_key, new_pet, pet_named, stored_pet, stored_pets},
};

const PAGE: i64 = 10;

struct Stores {
    source: Arc<MemoryBulkStorage>,
    target: Arc<MemoryBulkStorage>,
}

impl Stores {
    async fn new(source: impl IntoIterator<Item = i64>, target: impl IntoIterator<Item = i64>) -> Self {
        let stores = Self { source: Arc::default(), target: Arc::default() };
        stores.source.add_pets(stored_pets(source)).await.unwrap();
        stores.target.add_pets(stored_pets(target)).await.unwrap();
        stores
    }

    async fn copy(&self) -> Result<CopySummary, CopyError> {
        self.copy_with(&mut |_, _| {}).await
    }

    async fn copy_with(&self, progress: &mut (dyn FnMut(CopyPass, u64) + Send)) -> Result<CopySummary, CopyError> {
        let from = self.source.snapshot().await.unwrap();
        let copy = CopyStore::new(from.into(), self.target.clone(), None);
        CopyStore { page_size: usize::try_from(PAGE).unwrap(), ..copy }.execute(progress).await
    }
}

async fn pets(storage: &MemoryBulkStorage) -> Vec<StoredPet> {
    storage.snapshot().await.unwrap().pets(None, usize::MAX).await.unwrap()
}

/// Returns the [`stored_pet`] with this id under another name.
fn renamed(id: i64) -> StoredPet {
    StoredPet { pet: Pet::new(stored_pet(id).pet.id(), pet_named("Other")), ..stored_pet(id) }
}

async fn records(storage: &MemoryBulkStorage) -> Vec<IdempotencyRecord> {
    storage.snapshot().await.unwrap().idempotency_records(None, usize::MAX).await.unwrap()
}

#[tokio::test]
async fn a_copy_has_the_pets_of_the_source_with_ids_and_creation_times() {
    for count in [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE] {
        let stores = Stores::new((1..=count).map(|id| id * 3), []).await;
        let summary = stores.copy().await.unwrap();
        assert_eq!((summary.pets, summary.added), (count.unsigned_abs(), count.unsigned_abs()));
        assert_eq!(pets(&stores.target).await, pets(&stores.source).await);
        let next = stores.target.add(AddPet::new(new_pet())).await.unwrap().pet.id();
        assert!(next.get() > count * 3, "{next:?}");
    }
}

#[tokio::test]
async fn a_copy_has_the_records_of_idempotency_keys_that_have_not_expired() {
    let stores = Stores::new([1], []).await;
    let record = |text: &str, hours: u64| IdempotencyRecord {
        key: IdempotencyKey::new(ApiKeyId::new("key"), text),
        pet_digest: PetDigest::from_pet(&new_pet()),
        pet_id: PetId::parse(1).unwrap(),
        expires_at: SystemTime::UNIX_EPOCH + Duration::from_hours(hours),
    };
    let valid = (0..=PAGE).map(|number| record(&number.to_string(), 24 * 365 * 1_000));
    stores.source.add_idempotency_records(valid.chain([record("expired", 1)]).collect()).await.unwrap();

    for _ in 0..2 {
        assert_eq!(stores.copy().await.unwrap().idempotency_records, PAGE.unsigned_abs() + 1);
        assert_eq!(records(&stores.target).await, records(&stores.source).await);
    }
}

#[tokio::test]
async fn the_digest_depends_on_every_pet_with_its_id_and_creation_time() {
    let mut digests = Vec::new();
    let later = StoredPet { created_at: stored_pet(4).created_at, ..stored_pet(3) };
    for last in [None, Some(stored_pet(3)), Some(renamed(3)), Some(later), Some(stored_pet(4))] {
        let stores = Stores::new([1, 2], []).await;
        stores.source.add_pets(last.into_iter().collect()).await.unwrap();
        let digest = stores.copy().await.unwrap().digest;
        assert!(digest.len() == 64 && !digests.contains(&digest), "{digest}");
        digests.push(digest);
    }
}

#[tokio::test]
async fn the_progress_has_each_pass_with_the_number_of_pets() {
    let mut steps = Vec::new();
    let stores = Stores::new(1..=PAGE + 1, []).await;
    stores.copy_with(&mut |pass, pets| steps.push((pass, pets))).await.unwrap();
    let (page, all) = (PAGE.unsigned_abs(), PAGE.unsigned_abs() + 1);
    steps.retain(|(_, pets)| *pets >= page);
    let passes = [CopyPass::Check, CopyPass::Transfer, CopyPass::Verification];
    assert_eq!(steps, passes.into_iter().flat_map(|pass| [(pass, page), (pass, all)]).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_copy_that_is_interrupted_at_any_batch_and_repeated_is_complete() {
    const PETS: i64 = 3 * PAGE + 5;
    for batches in 0..4 {
        for is_written in [false, true] {
            let stores = Stores::new(1..=PETS, []).await;
            stores.target.interrupt_after(batches, is_written);
            let error = stores.copy().await.unwrap_err();
            assert!(
                matches!(error, CopyError::Target(ApiKeyChangeError::Store(StoreFailure::OutcomeUnknown(_)))),
                "{error}"
            );

            let copied = pets(&stores.target).await.len() as u64;
            assert_eq!(stores.copy().await.unwrap().added, PETS.unsigned_abs() - copied);
            assert_eq!(pets(&stores.target).await, pets(&stores.source).await);
        }
    }
}

#[tokio::test]
async fn a_copy_fills_gaps_between_the_pets_of_the_target() {
    let stores = Stores::new(1..=3 * PAGE, [1, 2, 4, PAGE + 7, 3 * PAGE]).await;
    assert_eq!(stores.copy().await.unwrap().added, 3 * PAGE.unsigned_abs() - 5);
    assert_eq!(pets(&stores.target).await, pets(&stores.source).await);
}

#[tokio::test]
async fn a_target_with_another_pet_than_the_source_is_not_changed() {
    let other_time = StoredPet { created_at: stored_pet(77).created_at, ..stored_pet(3) };
    for other in stored_pets([1, 4, 6, 10_000]).into_iter().chain([renamed(3), other_time]) {
        let id = other.pet.id();
        let stores = Stores::new([2, 3, 5].into_iter().chain(100..160), [2]).await;
        stores.target.add_pets(vec![other]).await.unwrap();
        let before = pets(&stores.target).await;
        let error = stores.copy().await.unwrap_err();
        assert!(matches!(error, CopyError::OtherPets(other) if other == id), "{error}");
        assert_eq!(pets(&stores.target).await, before);
    }
}

/// Runs a copy, during which this pet is added to the target at the end of the pass.
async fn copy_while_adding(stores: &Stores, at: CopyPass, id: i64) -> CopyError {
    let target = Arc::clone(&stores.target);
    let mut progress = move |pass, pets| {
        if (pass, pets) == (at, PAGE.unsigned_abs()) {
            let added = target.add_pets(stored_pets([id])).as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(added, Poll::Ready(Ok(true))), "a storage in memory responds at once");
        }
    };
    stores.copy_with(&mut progress).await.unwrap_err()
}

#[tokio::test]
async fn a_target_that_is_in_use_is_an_error() {
    let stores = Stores::new(1..=PAGE, []).await;
    let error = copy_while_adding(&stores, CopyPass::Transfer, 99).await;
    assert!(matches!(error, CopyError::Differs(10, 11)), "{error}");

    let stores = Stores::new(1..=PAGE, []).await;
    let error = copy_while_adding(&stores, CopyPass::Check, 5).await;
    assert!(matches!(error, CopyError::TargetChanged), "{error}");
    assert_eq!(pets(&stores.target).await, stored_pets([5]));
}

/// Returns a store with these keys. It takes every key, or refuses all.
fn api_key_store(ids: &[&str], is_writable: bool) -> Arc<MockApiKeyStore> {
    let key = |id: &&str| {
        let token = NewToken { digest: ApiKeyDigest::from_bytes([0; 32]), last_four: String::new(), lifetime: None };
        ApiKeyChange::Add(api_key(id), token).apply(None, None, SystemTime::UNIX_EPOCH).unwrap().unwrap()
    };
    let keys: Vec<_> = ids.iter().map(key).collect();
    let mut store = MockApiKeyStore::new();
    store.expect_list().returning(move || Ok(keys.clone()));
    let refusal = || Err(StoreFailure::Unavailable("not permitted".into()));
    store.expect_check_writable().returning(move || if is_writable { Ok(()) } else { refusal() });
    store.expect_change().returning(|change| {
        let after = change.apply(None, None, SystemTime::UNIX_EPOCH)?;
        Ok(ChangedApiKey { before: None, after, at: SystemTime::UNIX_EPOCH })
    });
    Arc::new(store)
}

#[tokio::test]
async fn a_target_whose_api_keys_cannot_be_written_is_not_changed() {
    for is_writable in [false, true] {
        let stores = Stores::new([1], []).await;
        let (source, target) = (api_key_store(&["a", "b"], true), api_key_store(&["b", "c"], is_writable));
        let from = stores.source.snapshot().await.unwrap();
        let copied = CopyStore::new(from.into(), stores.target.clone(), Some((source, target)));
        match copied.execute(&mut |_, _| {}).await {
            Ok(summary) => {
                assert!(is_writable);
                let others = vec![ApiKeyId::new("c")];
                assert_eq!(summary.api_keys, Some(ImportedApiKeys { added: 2, others }));
            }
            Err(error) => assert!(!is_writable && matches!(error, CopyError::Target(_)), "{error}"),
        }
        assert_eq!(pets(&stores.target).await.len(), usize::from(is_writable));
    }
}
