//! What [`PetRepository`] promises of idempotency keys. Every rule is given an empty repository.
#![expect(clippy::missing_panics_doc, reason = "a rule that is broken panics: that is what it is for")]

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_domain::{CategoryId, NewPet, Pet, PetName, PetStatus};

use crate::{
    ApiKeyId, IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, PetRepository},
    test_support::new_pet,
};

/// The part of `pet_repository_contract!` that is about idempotency keys.
#[doc(hidden)]
#[macro_export]
macro_rules! idempotency_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            idempotency, $setup(std::time::Duration::from_hours(24));
            the_same_key_and_animal_again_return_the_first,
            the_same_key_and_another_animal_are_refused,
            every_api_key_has_keys_of_its_own,
            keys_that_differ_add_animals_that_do_not,
            adds_without_a_key_are_never_the_same,
            of_concurrent_adds_with_one_key_one_adds,
            a_storm_of_retries_adds_one_animal_for_each_key,
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

/// Adds, and expects that to be a replay or not to be one.
async fn add(repository: &Repository, key: IdempotencyKey, pet: NewPet, replayed: bool) -> Pet {
    let added = try_add(repository, key, pet).await.expect("add");
    assert_eq!(added.replayed, replayed);
    added.pet
}

async fn everything(repository: &Repository) -> Vec<Pet> {
    repository.list(None, None, 1000).await.expect("list")
}

fn named(name: &str) -> NewPet {
    NewPet::new(PetName::parse(name).expect("a name"), CategoryId::new(1))
}

/// However often, and whatever was added in between.
pub async fn the_same_key_and_animal_again_return_the_first(repository: Repository) {
    let first = add(&repository, key("1"), new_pet(), false).await;
    assert_eq!(first, Pet::new(first.id(), new_pet()));
    assert_eq!(repository.find(first.id()).await.expect("find"), Some(first.clone()));

    assert_eq!(add(&repository, key("1"), new_pet(), true).await, first);
    let second = add(&repository, key("2"), new_pet(), false).await;
    assert_eq!(add(&repository, key("1"), new_pet(), true).await, first);

    assert!(second.id() > first.id());
    assert_eq!(everything(&repository).await, [first, second]);
}

/// Another name, another form of the same letters, another category, another status or none; and the first stays.
pub async fn the_same_key_and_another_animal_are_refused(repository: Repository) {
    let (name, category) = (PetName::parse("Ren\u{e9}").expect("a name"), CategoryId::new(1));
    let pet = NewPet::new(name.clone(), category).with_status(PetStatus::Sold);
    let first = add(&repository, key("1"), pet.clone(), false).await;

    let decomposed = PetName::parse("Rene\u{301}").expect("a name");
    for other in [
        NewPet::new(decomposed, category).with_status(pet.status()),
        NewPet::new(PetName::parse("Ren").expect("a name"), category).with_status(pet.status()),
        NewPet::new(name.clone(), CategoryId::new(-1)).with_status(pet.status()),
        NewPet::new(name.clone(), CategoryId::new(1 << 32 | 1)).with_status(pet.status()),
        NewPet::new(name.clone(), category).with_status(PetStatus::Available),
        NewPet::new(name, category),
    ] {
        let error = try_add(&repository, key("1"), other).await.expect_err("another animal");
        assert!(matches!(error, AddPetError::IdempotencyMismatch), "{error:?}");
    }
    assert_eq!(add(&repository, key("1"), pet, true).await, first);
    assert_eq!(everything(&repository).await, [first]);
}

/// Clients know nothing of each other's keys.
pub async fn every_api_key_has_keys_of_its_own(repository: Repository) {
    let mut added = Vec::new();
    // Two that would be one if the id and the key were merely put together.
    for (api_key, text, name) in [("shop", "1", "a"), ("farm", "1", "b"), ("shop1", "2", "c"), ("shop", "12", "d")] {
        added.push(add(&repository, IdempotencyKey::new(ApiKeyId::new(api_key), text), named(name), false).await);
    }
    assert_eq!(everything(&repository).await, added);
}

/// Case and every other character matter.
pub async fn keys_that_differ_add_animals_that_do_not(repository: Repository) {
    let longest = "x".repeat(255);
    let keys = ["a", "A", "a-", "aa", "\"a\"", "\\", "~", &longest[1..], &longest];
    for text in keys {
        add(&repository, key(text), new_pet(), false).await;
    }
    assert_eq!(everything(&repository).await.len(), keys.len());
}

/// Whatever was added with one.
pub async fn adds_without_a_key_are_never_the_same(repository: Repository) {
    add(&repository, key("1"), new_pet(), false).await;
    for _ in 0..3 {
        let added = repository.add(AddPet::new(new_pet())).await.expect("add");
        assert!(!added.replayed);
    }
    assert_eq!(everything(&repository).await.len(), 4);
}

/// The others return its animal, or are told that it is under way.
pub async fn of_concurrent_adds_with_one_key_one_adds(repository: Repository) {
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let repository = Arc::clone(&repository);
            tokio::spawn(async move { try_add(&repository, key("1"), new_pet()).await })
        })
        .collect();

    let mut first = None;
    let mut again = Vec::new();
    for task in tasks {
        match task.await.expect("the task") {
            Ok(AddedPet { pet, replayed: false }) => assert_eq!(first.replace(pet), None, "two added"),
            Ok(AddedPet { pet, replayed: true }) => again.push(pet),
            Err(AddPetError::IdempotencyConflict) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    let first = first.expect("one that added");
    again.push(add(&repository, key("1"), new_pet(), true).await);
    assert!(again.iter().all(|pet| *pet == first), "{again:?}");
    assert_eq!(everything(&repository).await, [first]);
}

/// Each with its own name, asked for by clients that do not wait for each other.
pub async fn a_storm_of_retries_adds_one_animal_for_each_key(repository: Repository) {
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let repository = Arc::clone(&repository);
            tokio::spawn(async move {
                for number in 0..50 {
                    // Each goes through the keys in another order.
                    let name = ((number * (2 * task + 1)) % 50).to_string();
                    match try_add(&repository, key(&name), named(&name)).await {
                        Ok(added) => assert_eq!(added.pet.name().as_str(), name),
                        Err(AddPetError::IdempotencyConflict) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("the task");
    }
    let pets = everything(&repository).await;
    let names: BTreeSet<_> = pets.iter().map(|pet| pet.name().as_str()).collect();
    assert!(names.len() == pets.len(), "{} animals of {} names", pets.len(), names.len());
    for number in 0..50 {
        try_add(&repository, key(&number.to_string()), named(&number.to_string())).await.expect("add");
    }
    assert_eq!(everything(&repository).await.len(), 50);
}

/// Not before, and can then be taken by another animal.
pub async fn a_key_is_free_again_after_its_retention(repository: Repository) {
    let start = Instant::now();
    let first = add(&repository, key("1"), named("first"), false).await;
    let second = loop {
        match try_add(&repository, key("1"), named("second")).await {
            Ok(added) => break added,
            Err(AddPetError::IdempotencyMismatch) => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(error) => panic!("{error:?}"),
        }
        assert!(start.elapsed() < SHORT * 20, "it never is");
    };
    assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
    assert!(!second.replayed);
    assert_eq!(everything(&repository).await, [first, second.pet]);
}
