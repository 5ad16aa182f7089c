//! What [`PetRepository`] promises. Every rule is given an empty repository.
#![expect(clippy::missing_panics_doc, reason = "a rule that is broken panics: that is what it is for")]

mod concurrency;

use std::sync::Arc;

use animal_store_domain::{CategoryId, NewPet, Pet, PetId, PetName, PetStatus};

use crate::{
    ports::{AddPet, PetRepository},
    test_support::new_pet,
};

pub use self::concurrency::*;

/// Writes one test for each rule of the contract, those of [idempotency keys](super::idempotency) among them. `setup` is
/// an async function that is told how long keys are kept, and returns an empty repository as `Arc<dyn PetRepository>` and
/// a guard that is dropped when the test ends.
#[macro_export]
macro_rules! pet_repository_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            pet_repository, $setup(std::time::Duration::from_hours(24));
            an_empty_repository_lists_nothing_and_finds_nothing,
            an_added_animal_is_found_and_listed_exactly_as_it_was_returned,
            every_name_comes_back_exactly,
            every_category_and_status_comes_back,
            an_id_that_was_never_given_is_none,
            an_animal_added_later_has_the_greater_id,
            a_list_is_in_ascending_order_of_id,
            a_list_without_a_status_holds_animals_of_every_status_and_of_none,
            a_list_by_status_holds_that_status_alone,
            a_list_holds_at_most_as_many_as_asked_for_and_they_are_the_first,
            a_list_begins_after_the_position_whether_or_not_an_animal_is_there,
            concurrent_adds_are_all_stored_under_ids_of_their_own,
            pages_reach_every_animal_once_while_others_are_added,
        );
        $crate::idempotency_contract!($setup);
    };
}

type Repository = Arc<dyn PetRepository>;

const EVERY_STATUS: [Option<PetStatus>; 4] =
    [None, Some(PetStatus::Available), Some(PetStatus::Pending), Some(PetStatus::Sold)];

async fn add(repository: &Repository, pet: NewPet) -> Pet {
    repository.add(AddPet::new(pet)).await.expect("add").pet
}

async fn add_with_status(repository: &Repository, status: Option<PetStatus>) -> Pet {
    add(repository, NewPet::new(new_pet().name().clone(), CategoryId::new(1)).with_status(status)).await
}

async fn list(repository: &Repository, status: Option<PetStatus>, after: Option<PetId>, at_most: usize) -> Vec<Pet> {
    repository.list(status, after, at_most).await.expect("list")
}

fn ids(pets: &[Pet]) -> Vec<PetId> {
    pets.iter().map(Pet::id).collect()
}

fn id(id: i64) -> PetId {
    PetId::parse(id).expect("1 or more")
}

/// Nothing was added: nothing is there.
pub async fn an_empty_repository_lists_nothing_and_finds_nothing(repository: Repository) {
    for status in EVERY_STATUS {
        assert_eq!(list(&repository, status, None, 101).await, []);
        assert_eq!(list(&repository, status, Some(id(1)), 101).await, []);
    }
    assert_eq!(repository.find(id(1)).await.expect("find"), None);
}

/// The answer of `add` is the animal that is stored.
pub async fn an_added_animal_is_found_and_listed_exactly_as_it_was_returned(repository: Repository) {
    let added = add(&repository, new_pet()).await;

    assert_eq!(added, Pet::new(added.id(), new_pet()));
    assert_eq!(repository.find(added.id()).await.expect("find"), Some(added.clone()));
    assert_eq!(list(&repository, None, None, 101).await, [added]);
}

/// Neither length, nor plane, nor form of normalisation, nor white space changes a name.
pub async fn every_name_comes_back_exactly(repository: Repository) {
    let longest = "🐈".repeat(PetName::MAX_CHARS);
    for text in
        ["x", &longest, " Rex ", "e\u{301}", "\u{e9}", "👩‍🚀", "\u{10ffff}", "\u{202e}kcab", "'; --", "\\N", "a\u{a0}b"]
    {
        let name = PetName::parse(text).expect("a name");
        let added = add(&repository, NewPet::new(name, CategoryId::new(1))).await;
        let found = repository.find(added.id()).await.expect("find").expect("the animal");
        assert_eq!(found.name().as_str(), text);
    }
}

/// Categories are any 64-bit integer; no status is not a status.
pub async fn every_category_and_status_comes_back(repository: Repository) {
    for category in [i64::MIN, -1, 0, 1, i64::MAX] {
        for status in EVERY_STATUS {
            let pet = NewPet::new(new_pet().name().clone(), CategoryId::new(category)).with_status(status);
            let added = add(&repository, pet.clone()).await;
            let found = repository.find(added.id()).await.expect("find").expect("the animal");
            assert_eq!(found, Pet::new(added.id(), pet));
        }
    }
}

/// An unknown id is no error.
pub async fn an_id_that_was_never_given_is_none(repository: Repository) {
    let added = add(&repository, new_pet()).await.id().get();

    for unknown in [added + 1, added + 1_000_000, i64::from(u32::MAX), i64::MAX - 1, i64::MAX] {
        assert_eq!(repository.find(id(unknown)).await.expect("find"), None, "{unknown}");
    }
}

/// So that pages, once read, stay as they were.
pub async fn an_animal_added_later_has_the_greater_id(repository: Repository) {
    let mut last = add(&repository, new_pet()).await.id();
    for status in EVERY_STATUS.into_iter().cycle().take(20) {
        let next = add_with_status(&repository, status).await.id();
        assert!(next > last, "{next:?} was given after {last:?}");
        last = next;
    }
}

/// Whatever the filter.
pub async fn a_list_is_in_ascending_order_of_id(repository: Repository) {
    for status in EVERY_STATUS.into_iter().cycle().take(40) {
        add_with_status(&repository, status).await;
    }
    for status in EVERY_STATUS {
        let listed = ids(&list(&repository, status, None, 101).await);
        assert!(listed.is_sorted(), "{listed:?}");
        assert!(!listed.is_empty());
    }
}

/// A filter that is not given filters nothing.
pub async fn a_list_without_a_status_holds_animals_of_every_status_and_of_none(repository: Repository) {
    let mut added = Vec::new();
    for status in EVERY_STATUS {
        added.push(add_with_status(&repository, status).await);
    }
    assert_eq!(list(&repository, None, None, 101).await, added);
}

/// And every animal of it.
pub async fn a_list_by_status_holds_that_status_alone(repository: Repository) {
    let mut added = Vec::new();
    for status in EVERY_STATUS.into_iter().cycle().take(12) {
        added.push(add_with_status(&repository, status).await);
    }
    for status in PetStatus::ALL {
        let expected: Vec<_> = added.iter().filter(|pet| pet.status() == Some(status)).cloned().collect();
        assert_eq!(list(&repository, Some(status), None, 101).await, expected);
    }
}

/// From none to more than there are.
pub async fn a_list_holds_at_most_as_many_as_asked_for_and_they_are_the_first(repository: Repository) {
    let mut added = Vec::new();
    for _ in 0..5 {
        added.push(add(&repository, new_pet()).await);
    }
    for status in [None, new_pet().status()] {
        for at_most in 0..=6 {
            assert_eq!(list(&repository, status, None, at_most).await, added[..at_most.min(5)]);
        }
    }
}

/// A position is a number, not an animal.
pub async fn a_list_begins_after_the_position_whether_or_not_an_animal_is_there(repository: Repository) {
    let mut added = Vec::new();
    for status in EVERY_STATUS.into_iter().cycle().take(12) {
        added.push(add_with_status(&repository, status).await);
    }
    for (index, position) in added.iter().map(Pet::id).enumerate() {
        assert_eq!(list(&repository, None, Some(position), 101).await, added[index + 1..]);

        for status in PetStatus::ALL {
            let expected: Vec<_> =
                added[index + 1..].iter().filter(|pet| pet.status() == Some(status)).cloned().collect();
            assert_eq!(list(&repository, Some(status), Some(position), 101).await, expected);
        }
    }
    let last = added[11].id().get();
    for beyond in [last + 1, last + 1_000_000, i64::MAX] {
        assert_eq!(list(&repository, None, Some(id(beyond)), 101).await, []);
        assert_eq!(list(&repository, Some(PetStatus::Sold), Some(id(beyond)), 101).await, []);
    }
}
