//! The contract of [`PetRepository`]. Each rule gets an empty repository.

mod concurrency;

use std::sync::Arc;

use animal_store_domain::{NewPet, Pet, PetId, PetStatus};

use super::{EVERY_STATUS, various_pets};
use crate::{
    ports::{AddPet, PetRepository},
    test_support::{new_pet, pet_named},
};

pub use self::concurrency::*;

/// Writes one test for each rule of the contract, including those about [idempotency keys](super::idempotency). `setup`
/// is an async function that takes the retention of idempotency keys. It returns an empty repository as
/// `Arc<dyn PetRepository>`, and a guard that is dropped after the test.
#[macro_export]
macro_rules! pet_repository_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            pet_repository, $setup(std::time::Duration::from_hours(24));
            an_empty_repository_lists_and_finds_nothing,
            an_added_pet_is_found_and_listed_as_it_was_returned,
            an_unknown_id_is_none,
            a_list_contains_the_first_pets_of_its_status_in_the_order_of_their_addition,
            a_list_begins_after_its_position_even_if_no_pet_has_that_id,
            concurrent_adds_store_every_pet_under_its_own_id,
            pages_contain_every_pet_once_while_others_are_added,
        );
        $crate::idempotency_contract!($setup);
    };
}

type Repository = Arc<dyn PetRepository>;

async fn add(repository: &Repository, pet: NewPet) -> Pet {
    repository.add(AddPet::new(pet)).await.expect("add").pet
}

async fn add_with_status(repository: &Repository, status: Option<PetStatus>) -> Pet {
    add(repository, pet_named("Rex").with_status(status)).await
}

/// Adds this many pets, with one status after the other.
async fn add_many(repository: &Repository, count: usize) -> Vec<Pet> {
    let mut added = Vec::new();
    for status in EVERY_STATUS.into_iter().cycle().take(count) {
        added.push(add_with_status(repository, status).await);
    }
    added
}

fn with_status(pets: &[Pet], status: PetStatus) -> Vec<Pet> {
    pets.iter()
        .filter(|pet| pet.new_pet().status() == Some(status))
        .cloned()
        .collect()
}

async fn list(
    repository: &Repository,
    status: Option<PetStatus>,
    after: Option<PetId>,
    limit: usize,
) -> Vec<Pet> {
    repository.list(status, after, limit).await.expect("list")
}

async fn find(repository: &Repository, id: PetId) -> Option<Pet> {
    repository.find(id).await.expect("find")
}

fn id(id: i64) -> PetId {
    PetId::parse(id).expect("1 or greater")
}

/// This holds for every status and every position.
pub async fn an_empty_repository_lists_and_finds_nothing(repository: Repository) {
    for status in EVERY_STATUS {
        assert_eq!(list(&repository, status, None, 101).await, []);
        assert_eq!(list(&repository, status, Some(id(1)), 101).await, []);
    }
    assert_eq!(find(&repository, id(1)).await, None);
}

/// `add` returns the pet that is stored.
pub async fn an_added_pet_is_found_and_listed_as_it_was_returned(repository: Repository) {
    let mut all = Vec::new();
    for pet in various_pets() {
        let added = add(&repository, pet.clone()).await;
        assert_eq!(added, Pet::new(added.id(), pet));
        assert_eq!(find(&repository, added.id()).await.as_ref(), Some(&added));
        all.push(added);
    }
    assert_eq!(list(&repository, None, None, 101).await, all);
}

/// It is not an error.
pub async fn an_unknown_id_is_none(repository: Repository) {
    let added = add(&repository, new_pet()).await.id().get();

    for unknown in [
        added + 1,
        added + 1_000_000,
        i64::from(u32::MAX),
        i64::MAX - 1,
        i64::MAX,
    ] {
        assert_eq!(find(&repository, id(unknown)).await, None, "{unknown}");
    }
}

/// A pet that is added later has the greater id. Limits are from 0 to more than the number of pets. Without a status, a
/// list contains every pet, including those without one.
pub async fn a_list_contains_the_first_pets_of_its_status_in_the_order_of_their_addition(
    repository: Repository,
) {
    let added = add_many(&repository, 40).await;
    assert!(
        added.is_sorted_by(|first, second| first.id() < second.id()),
        "{added:?}"
    );
    for limit in [0, 1, 9, 10, 11, 39, 40, 41] {
        assert_eq!(
            list(&repository, None, None, limit).await,
            added[..limit.min(40)]
        );
        for status in PetStatus::ALL {
            let pets = with_status(&added, status);
            assert_eq!(
                list(&repository, Some(status), None, limit).await,
                pets[..limit.min(10)]
            );
        }
    }
}

/// A position is a number, not a pet.
pub async fn a_list_begins_after_its_position_even_if_no_pet_has_that_id(repository: Repository) {
    let added = add_many(&repository, 12).await;
    for (index, position) in added.iter().map(Pet::id).enumerate() {
        let after = &added[index + 1..];
        assert_eq!(list(&repository, None, Some(position), 101).await, after);
        for status in PetStatus::ALL {
            assert_eq!(
                list(&repository, Some(status), Some(position), 101).await,
                with_status(after, status)
            );
        }
    }
    let last = added[11].id().get();
    for beyond in [last + 1, last + 1_000_000, i64::MAX] {
        assert_eq!(list(&repository, None, Some(id(beyond)), 101).await, []);
        assert_eq!(
            list(&repository, Some(PetStatus::Sold), Some(id(beyond)), 101).await,
            []
        );
    }
}
