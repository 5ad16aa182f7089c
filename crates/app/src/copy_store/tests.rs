mod memory_storage;

use std::{sync::atomic::Ordering::Relaxed, time::SystemTime};

use animal_store_domain::Pet;

use self::memory_storage::{Addition, MemoryStorage};
use super::*;
use crate::{
    AuditEntry, IdempotencyKey, PetDigest,
    ports::{
        ApiKeyChangeError, ChangedApiKey, IdempotencyRecord, MockApiKeyStore, StoreFailure,
        StoredPet,
    },
    test_support::{
        api_key, api_key_id, key_changes::add, new_pet, pet_named, stored_pet, stored_pets,
    },
};

const PAGE: i64 = 10;

struct Stores {
    source: Arc<MemoryStorage>,
    target: Arc<MemoryStorage>,
}

impl Stores {
    fn new(source: impl IntoIterator<Item = i64>, target: impl IntoIterator<Item = i64>) -> Self {
        Self {
            source: MemoryStorage::of(source),
            target: MemoryStorage::of(target),
        }
    }

    async fn copy(&self) -> Result<CopySummary, CopyError> {
        let copy = CopyStore::new(self.source.clone(), self.target.clone(), None);
        let copy = CopyStore {
            page_size: usize::try_from(PAGE).unwrap(),
            ..copy
        };
        copy.execute().await
    }

    /// Copies, and returns the number of pets that were added to a target that is complete now.
    async fn complete(&self) -> u64 {
        let summary = self.copy().await.unwrap();
        assert_eq!(self.target.pets(), self.source.pets());
        assert_eq!(summary.pets, self.source.pets().len() as u64);
        summary.added
    }
}

/// Returns the [`stored_pet`] with this id under another name.
fn renamed(id: i64) -> StoredPet {
    StoredPet {
        pet: Pet::new(stored_pet(id).pet.id(), pet_named("Other")),
        ..stored_pet(id)
    }
}

/// Returns the [`stored_pet`] with this id and another creation time.
fn created_later(id: i64) -> StoredPet {
    StoredPet {
        created_at: stored_pet(77).created_at,
        ..stored_pet(id)
    }
}

#[tokio::test]
async fn a_copy_adds_the_pets_that_the_target_lacks_with_ids_and_creation_times() {
    for count in [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE] {
        let stores = Stores::new((1..=count).map(|id| id * 3), []);
        assert_eq!(stores.complete().await, count.unsigned_abs());
    }
    let stores = Stores::new(1..=3 * PAGE, [1, 2, 4, PAGE + 7, 3 * PAGE]);
    let added = stores.complete().await;
    assert_eq!(added, 3 * PAGE.unsigned_abs() - 5, "the gaps are filled");
}

#[tokio::test]
async fn a_copy_gives_out_no_id_that_its_source_has_given_out() {
    let deleted = PetId::parse(9).unwrap();
    for pets in [vec![], vec![1]] {
        let stores = Stores::new(pets, []);
        stores.source.skip_ids(deleted).await.unwrap();
        stores.complete().await;
        assert_eq!(stores.target.last_id(), Some(deleted));
    }
}

#[tokio::test]
async fn a_copy_has_the_records_of_idempotency_keys() {
    let stores = Stores::new([1], []);
    let records = (0..=PAGE).map(|number| IdempotencyRecord {
        key: IdempotencyKey::new(api_key_id("key"), &number.to_string()),
        pet_digest: PetDigest::from_pet(&new_pet()),
        pet_id: PetId::parse(1).unwrap(),
        expires_at: SystemTime::UNIX_EPOCH,
    });
    stores
        .source
        .add_idempotency_records(records.collect())
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(
            stores.copy().await.unwrap().idempotency_records,
            PAGE.unsigned_abs() + 1
        );
        assert_eq!(stores.target.records(), stores.source.records());
    }
}

#[tokio::test]
async fn the_digest_depends_on_every_pet_with_its_id_and_creation_time() {
    let mut digests = Vec::new();
    for last in [
        None,
        Some(stored_pet(3)),
        Some(renamed(3)),
        Some(created_later(3)),
        Some(stored_pet(4)),
    ] {
        let stores = Stores::new([1, 2], []);
        assert!(stores.source.add(last.into_iter().collect()));
        let digest = stores.copy().await.unwrap().digest;
        assert!(digest.len() == 64 && !digests.contains(&digest), "{digest}");
        digests.push(digest);
    }
}

#[tokio::test]
async fn a_copy_that_is_interrupted_at_any_batch_and_repeated_is_complete() {
    const PETS: i64 = 3 * PAGE + 5;
    for batches in 0..4 {
        for is_written in [false, true] {
            let stores = Stores::new(1..=PETS, []);
            *stores.target.interruption.lock().unwrap() = Some((batches, is_written));
            let error = stores.copy().await.unwrap_err();
            let CopyError::Target(ApiKeyChangeError::Store(StoreFailure::OutcomeUnknown(_))) =
                error
            else {
                panic!("{error}")
            };
            assert!(stores.target.is_marked.load(Relaxed));
            let copied = stores.target.pets().len() as u64;
            assert_eq!(stores.complete().await, PETS.unsigned_abs() - copied);
            assert!(!stores.target.is_marked.load(Relaxed));
        }
    }
}

#[tokio::test]
async fn a_target_with_another_pet_than_the_source_is_not_changed() {
    for other in stored_pets([1, 4, 6, 10_000])
        .into_iter()
        .chain([renamed(3), created_later(3)])
    {
        let id = other.pet.id();
        let stores = Stores::new([2, 3, 5].into_iter().chain(100..160), [2]);
        assert!(stores.target.add(vec![other]));
        let before = stores.target.pets();
        let error = stores.copy().await.unwrap_err();
        assert!(
            matches!(error, CopyError::OtherPets(other) if other == id),
            "{error}"
        );
        assert_eq!(stores.target.pets(), before);
        assert!(!stores.target.is_marked.load(Relaxed));
    }
}

#[tokio::test]
async fn a_source_that_a_newer_program_has_expanded_is_refused_and_such_a_target_is_not() {
    let stores = Stores::new([1, 2], []);
    let expansion = || vec!["0004expand".to_owned()];
    *stores.source.newer_migrations.lock().unwrap() = expansion();
    let error = stores.copy().await.unwrap_err();
    assert!(error.to_string().contains("(0004expand)"), "{error}");
    assert!(stores.target.pets().is_empty());
    assert!(!stores.target.is_marked.load(Relaxed));

    *stores.source.newer_migrations.lock().unwrap() = Vec::new();
    *stores.target.newer_migrations.lock().unwrap() = expansion();
    assert_eq!(stores.complete().await, 2);
}

#[tokio::test]
async fn a_target_that_is_in_use_is_an_error() {
    for (addition, pets) in [
        // The check has passed, and the next snapshot is that of the verification.
        (
            Addition::BeforeSnapshot(3, 99),
            (1..=PAGE).chain([99]).collect::<Vec<_>>(),
        ),
        (Addition::BeforeBatch(5), vec![5]),
    ] {
        let stores = Stores::new(1..=PAGE, []);
        *stores.target.addition.lock().unwrap() = Some(addition);
        let error = stores.copy().await.unwrap_err();
        assert!(matches!(error, CopyError::Changed), "{error}");
        assert_eq!(stores.target.pets(), stored_pets(pets));
    }
}

#[tokio::test]
async fn a_target_is_compared_without_the_mark_unless_it_is_empty() {
    for (present, marks) in [(vec![], [false, true]), (vec![1], [false, false])] {
        let stores = Stores::new([1, 2], present);
        stores.complete().await;
        assert!(stores.target.marks.lock().unwrap().starts_with(&marks));
        assert!(!stores.target.is_marked.load(Relaxed));
    }
}

#[tokio::test]
async fn a_target_that_is_refused_keeps_no_mark_from_when_it_was_empty() {
    let stores = Stores::new(1..=PAGE, []);
    *stores.target.addition.lock().unwrap() = Some(Addition::BeforeSnapshot(2, 99));
    let error = stores.copy().await.unwrap_err();
    assert!(matches!(error, CopyError::OtherPets(_)), "{error}");
    assert!(!stores.target.is_marked.load(Relaxed));
}

/// Returns a store with these keys. It takes every key, or refuses all.
fn api_key_store(ids: &[&str], is_writable: bool) -> MockApiKeyStore {
    let key = |id: &&str| add(id, id, None).apply(None, None, SystemTime::UNIX_EPOCH);
    let keys: Vec<_> = ids.iter().filter_map(|id| key(id).unwrap()).collect();
    let mut store = MockApiKeyStore::new();
    let listed = keys.clone();
    store.expect_list().returning(move || Ok(listed.clone()));
    let refusal = || Err(StoreFailure::Unavailable("not permitted".into()));
    store
        .expect_check_writable()
        .returning(move || if is_writable { Ok(()) } else { refusal() });
    store.expect_change().returning(move |change, _| {
        let before = keys.iter().find(|known| known.key.id == *change.id());
        let after = change.apply(before, None, SystemTime::UNIX_EPOCH)?;
        Ok(ChangedApiKey {
            before: before.cloned(),
            after,
            at: SystemTime::UNIX_EPOCH,
        })
    });
    let entries: Vec<_> = ids.iter().map(|id| entry(id)).collect();
    store
        .expect_audit_log()
        .returning(move || Ok(entries.clone()));
    store
}

fn entry(id: &str) -> AuditEntry {
    AuditEntry {
        at: SystemTime::UNIX_EPOCH,
        by: "root@host".to_owned(),
        change: "create".to_owned(),
        key: api_key(id),
        expires: None,
        old_token_ends: None,
    }
}

async fn copy_with_api_keys(stores: &Stores, is_writable: bool) -> Result<CopySummary, CopyError> {
    let mut target = api_key_store(&["b", "c"], is_writable);
    target
        .expect_append_audit()
        .times(usize::from(is_writable))
        .withf(|added| *added == [entry("a")])
        .returning(|_| Ok(()));
    let api_keys = ApiKeyStores {
        from: Arc::new(api_key_store(&["a", "b"], true)),
        to: Arc::new(target),
    };
    CopyStore::new(stores.source.clone(), stores.target.clone(), Some(api_keys))
        .execute()
        .await
}

#[tokio::test]
async fn api_keys_are_imported_and_a_target_without_the_permission_is_not_changed() {
    let stores = Stores::new([1], []);
    let error = copy_with_api_keys(&stores, false).await.unwrap_err();
    assert!(matches!(error, CopyError::Target(_)), "{error}");
    assert_eq!(stores.target.pets(), []);

    let imported = copy_with_api_keys(&stores, true).await.unwrap().api_keys;
    assert_eq!(
        imported,
        Some(ImportedApiKeys {
            added: 1,
            others: vec![api_key_id("c")],
            valid_again: Vec::new(),
        })
    );
    assert_eq!(stores.target.pets(), stores.source.pets());
}
