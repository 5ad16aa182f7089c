//! The contract of [`PetRepository`] about idempotency keys. Each rule gets an empty repository.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_domain::{NewPet, Pet};

use crate::{
    IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, PetRepository},
    test_support::{api_key_id, join_tasks, new_pet, pet_named},
};

/// The part of `pet_repository_contract!` about idempotency keys.
#[doc(hidden)]
#[macro_export]
macro_rules! idempotency_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            idempotency, $setup(std::time::Duration::from_hours(24));
            of_concurrent_adds_with_one_key_one_adds_its_pet,
            the_same_key_and_pet_return_the_first_pet,
            the_same_key_with_another_pet_is_refused,
            the_keys_of_two_api_keys_are_independent,
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
    IdempotencyKey::new(api_key_id("shop"), text)
}

async fn try_add(
    repository: &Repository,
    key: IdempotencyKey,
    pet: NewPet,
) -> Result<AddedPet, AddPetError> {
    repository
        .add(AddPet {
            pet,
            idempotency_key: Some(key),
        })
        .await
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

/// Equal adds wait for it and return its pet, and the others are refused.
pub async fn of_concurrent_adds_with_one_key_one_adds_its_pet(repository: Repository) {
    let pets = ["a", "b"].map(pet_named).into_iter().cycle().take(16);
    let results = join_tasks(pets.clone().map(|pet| {
        let repository = Arc::clone(&repository);
        async move { try_add(&repository, key("1"), pet).await }
    }));
    let results = results.await;

    let [stored] = &list_all(&repository).await[..] else {
        panic!("one pet")
    };
    for (pet, result) in pets.zip(&results) {
        match result {
            Ok(added) => assert_eq!(
                (&added.pet, &pet),
                (stored, stored.new_pet()),
                "{results:?}"
            ),
            Err(AddPetError::IdempotencyMismatch) => {
                assert_ne!(pet, *stored.new_pet(), "{results:?}");
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(
        results
            .iter()
            .flatten()
            .filter(|added| !added.replayed)
            .count(),
        1,
        "{results:?}"
    );
}

/// This holds for every retry, even after other pets were added.
pub async fn the_same_key_and_pet_return_the_first_pet(repository: Repository) {
    let first = add(&repository, key("1"), new_pet()).await;
    assert_eq!(first, Pet::new(first.id(), new_pet()));
    assert_eq!(
        repository.find(first.id()).await.expect("find"),
        Some(first.clone())
    );

    assert_eq!(replay(&repository, key("1"), new_pet()).await, first);
    let second = add(&repository, key("2"), new_pet()).await;
    assert_eq!(replay(&repository, key("1"), new_pet()).await, first);

    assert!(second.id() > first.id());
    assert_eq!(list_all(&repository).await, [first, second]);
}

/// The first pet is not changed. The unit tests of `PetDigest` have the differences.
pub async fn the_same_key_with_another_pet_is_refused(repository: Repository) {
    let first = add(&repository, key("1"), new_pet()).await;
    let error = try_add(&repository, key("1"), new_pet().with_status(None))
        .await
        .expect_err("another pet");
    assert!(
        matches!(error, AddPetError::IdempotencyMismatch),
        "{error:?}"
    );
    assert_eq!(replay(&repository, key("1"), new_pet()).await, first);
    assert_eq!(list_all(&repository).await, [first]);
}

/// This holds even if the concatenations of API key id and text are equal.
pub async fn the_keys_of_two_api_keys_are_independent(repository: Repository) {
    let mut added = Vec::new();
    for (api_key, text, name) in [
        ("shop", "1", "a"),
        ("farm", "1", "b"),
        ("shop1", "2", "c"),
        ("shop", "12", "d"),
    ] {
        added.push(
            add(
                &repository,
                IdempotencyKey::new(api_key_id(api_key), text),
                pet_named(name),
            )
            .await,
        );
    }
    assert_eq!(list_all(&repository).await, added);
}

/// It is not free earlier. Afterwards another pet can be added with it.
pub async fn a_key_is_free_again_after_its_retention(repository: Repository) {
    let start = Instant::now();
    let first = add(&repository, key("1"), pet_named("first")).await;
    let added = Instant::now();
    let second = loop {
        let sent = Instant::now();
        match try_add(&repository, key("1"), pet_named("second")).await {
            Ok(added) => break added,
            // The clocks of a store and of this process may differ a little.
            Err(AddPetError::IdempotencyMismatch) => {
                assert!(sent < added + 2 * SHORT, "the key is still taken");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    };
    assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
    assert!(!second.replayed);
    assert_eq!(list_all(&repository).await, [first, second.pet]);
}
