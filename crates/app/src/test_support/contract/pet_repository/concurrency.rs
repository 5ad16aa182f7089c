use std::{collections::BTreeSet, sync::Arc};

use animal_store_domain::PetStatus;
use tokio::task::yield_now;

use super::{EVERY_STATUS, Repository, add, add_with_status, list};
use crate::test_support::{join_tasks, pet_named};

/// Several clients add at the same time.
pub async fn concurrent_adds_store_every_pet_under_its_own_id(repository: Repository) {
    let added = join_tasks((0..8).map(|task| {
        let repository = Arc::clone(&repository);
        async move {
            let mut added = Vec::new();
            for number in 0..25 {
                let pet =
                    pet_named(&format!("{task}-{number}")).with_status(EVERY_STATUS[number % 4]);
                added.push(add(&repository, pet).await);
            }
            added
        }
    }));

    let mut ids = BTreeSet::new();
    for pet in added.await.concat() {
        assert!(ids.insert(pet.id()), "{:?} was given twice", pet.id());
        assert_eq!(repository.find(pet.id()).await.expect("find"), Some(pet));
    }
    assert_eq!(ids.len(), 200);
}

/// Pages contain each pet that was added before the first page exactly once, and later ones at most once.
pub async fn pages_contain_every_pet_once_while_others_are_added(repository: Repository) {
    for status in [None, Some(PetStatus::Sold)] {
        let mut before = BTreeSet::new();
        for _ in 0..50 {
            before.insert(add_with_status(&repository, status).await.id());
        }
        let writer = Arc::clone(&repository);
        let writer = tokio::spawn(async move {
            for _ in 0..50 {
                add_with_status(&writer, status).await;
            }
        });

        let mut seen = BTreeSet::new();
        let mut position = None;
        loop {
            let page = list(&repository, status, position, 7).await;
            for pet in &page {
                assert!(seen.insert(pet.id()), "{:?} was listed twice", pet.id());
            }
            match page.last() {
                Some(last) => position = Some(last.id()),
                None if writer.is_finished() => break,
                None => yield_now().await,
            }
        }
        writer.await.expect("the writer does not panic");

        assert!(
            before.is_subset(&seen),
            "missing: {:?}",
            before.difference(&seen)
        );
    }
}
