//! The contract of [`PetRepository`] about idempotency keys. Each rule gets an empty repository.
#![expect(clippy::missing_panics_doc, reason = "a rule panics if the adapter breaks it")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_domain::{NewPet, Pet};

use crate::{
    ApiKeyId, IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, PetRepository},
    test_support::{join_tasks, new_pet, pet_named},
};

/// The part of `pet_repository_contract!` about idempotency keys.
#[doc(hidden)]
#[macro_export]
macro_rules! idempotency_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            idempotency, $setup(std::time::Duration::from_hours(24));
            of_different_concurrent_adds_with_one_key_one_adds_its_pet,
            the_same_key_and_pet_return_the_first_pet,
            the_same_key_with_another_pet_is_refused,
            the_keys_of_two_api_keys_are_independent,
            adds_without_a_key_always_add_a_pet,
            concurrent_adds_with_one_key_add_one_pet,
        );
        $crate::contract_tests!(
            idempotency, $setup($crate::test_support::contract::idempotency::SHORT);
            a_key_is_free_again_after_its_retention,
        );
    };
}

/// A retention that a test can wait for.
pub const SHORT: Duration = Duration::from_secs(1);

type Repository = Arc<dyn PetRepository>;

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(ApiKeyId::new("shop"), text)
}

async fn try_add(repository: &Repository, key: IdempotencyKey, pet: NewPet) -> Result<AddedPet, AddPetError> {
    repository.add(AddPet { pet, idempotency_key: Some(key) }).await
}

async fn add(repository: &Repository, key: IdempotencyKey, pet: NewPet) -> Pet {
    let added = try_add(repository, key, pet).await.expect("add");
    assert!(!added.replayed, "{added:?}");
    added.pet
}

async fn replay(repository: &Repository, key: IdempotencyKey, pet: NewPet) -> Pet {
    let added = try_add(repository, key, pet).await.expect("add");
    assert!(added.replayed, "{added:?}");
    added.pet
}

async fn list_all(repository: &Repository) -> Vec<Pet> {
    repository.list(None, None, 1000).await.expect("list")
}

/// The others are refused.
pub async fn of_different_concurrent_adds_with_one_key_one_adds_its_pet(repository: Repository) {
    let results = join_tasks((0..8).map(|task| {
        let repository = Arc::clone(&repository);
        async move { try_add(&repository, key("1"), pet_named(&task.to_string())).await }
    }));
    let results = results.await;

    let refused = results.iter().filter(|result| matches!(result, Err(AddPetError::IdempotencyMismatch)));
    assert_eq!(refused.count(), 7, "{results:?}");
    let added: Vec<_> = results.iter().flatten().map(|added| added.pet.clone()).collect();
    assert_eq!(list_all(&repository).await, added);
}

/// This holds for every retry, even after other pets were added.
pub async fn the_same_key_and_pet_return_the_first_pet(repository: Repository) {
    let first = add(&repository, key("1"), new_pet()).await;
    assert_eq!(first, Pet::new(first.id(), new_pet()));
    assert_eq!(repository.find(first.id()).await.expect("find"), Some(first.clone()));

    assert_eq!(replay(&repository, key("1"), new_pet()).await, first);
    let second = add(&repository, key("2"), new_pet()).await;
    assert_eq!(replay(&repository, key("1"), new_pet()).await, first);

    assert!(second.id() > first.id());
    assert_eq!(list_all(&repository).await, [first, second]);
}

/// The first pet is not changed. The unit tests of `PetDigest` have the differences.
pub async fn the_same_key_with_another_pet_is_refused(repository: Repository) {
    let first = add(&repository, key("1"), new_pet()).await;
    let error = try_add(&repository, key("1"), new_pet().with_status(None)).await.expect_err("another pet");
    assert!(matches!(error, AddPetError::IdempotencyMismatch), "{error:?}");
    assert_eq!(replay(&repository, key("1"), new_pet()).await, first);
    assert_eq!(list_all(&repository).await, [first]);
}

/// This holds even if the concatenations of API key id and text are equal.
pub async fn the_keys_of_two_api_keys_are_independent(repository: Repository) {
    let mut added = Vec::new();
    for (api_key, text, name) in [("shop", "1", "a"), ("farm", "1", "b"), ("shop1", "2", "c"), ("shop", "12", "d")] {
        added.push(add(&repository, IdempotencyKey::new(ApiKeyId::new(api_key), text), pet_named(name)).await);
    }
    assert_eq!(list_all(&repository).await, added);
}

/// This holds even if an equal pet was added with a key.
pub async fn adds_without_a_key_always_add_a_pet(repository: Repository) {
    add(&repository, key("1"), new_pet()).await;
    for _ in 0..3 {
        let added = repository.add(AddPet::new(new_pet())).await.expect("add");
        assert!(!added.replayed);
    }
    assert_eq!(list_all(&repository).await.len(), 4);
}

/// The others wait for it, and return that pet.
pub async fn concurrent_adds_with_one_key_add_one_pet(repository: Repository) {
    let results = join_tasks((0..16).map(|_| {
        let repository = Arc::clone(&repository);
        async move { try_add(&repository, key("1"), new_pet()).await }
    }));

    let added: Vec<_> = results.await.into_iter().map(|result| result.expect("add")).collect();
    assert_eq!(added.iter().filter(|added| !added.replayed).count(), 1, "{added:?}");
    let [pet] = &list_all(&repository).await[..] else { panic!("one pet") };
    assert!(added.iter().all(|added| added.pet == *pet), "{added:?}");
}

/// It is not free earlier. Afterwards another pet can be added with it.
pub async fn a_key_is_free_again_after_its_retention(repository: Repository) {
    let start = Instant::now();
    let first = add(&repository, key("1"), pet_named("first")).await;
    let second = loop {
        match try_add(&repository, key("1"), pet_named("second")).await {
            Ok(added) => break added,
            Err(AddPetError::IdempotencyMismatch) => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(error) => panic!("{error:?}"),
        }
        assert!(start.elapsed() < SHORT * 20, "the key is still taken");
    };
    assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
    assert!(!second.replayed);
    assert_eq!(list_all(&repository).await, [first, second.pet]);
}
