use std::{collections::BTreeSet, sync::Arc};

use animal_store_domain::{CategoryId, NewPet, PetName, PetStatus};

use super::{EVERY_STATUS, Repository, add, add_with_status, list};

/// However many clients there are.
pub async fn concurrent_adds_are_all_stored_under_ids_of_their_own(repository: Repository) {
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let repository = Arc::clone(&repository);
            tokio::spawn(async move {
                let mut added = Vec::new();
                for number in 0..25 {
                    let name = PetName::parse(&format!("{task}-{number}")).expect("a name");
                    let status = EVERY_STATUS[number % 4];
                    added.push(add(&repository, NewPet::new(name, CategoryId::new(task)).with_status(status)).await);
                }
                added
            })
        })
        .collect();

    let mut distinct = BTreeSet::new();
    for task in tasks {
        for pet in task.await.expect("the task") {
            assert!(distinct.insert(pet.id()), "{:?} was given twice", pet.id());
            assert_eq!(repository.find(pet.id()).await.expect("find"), Some(pet));
        }
    }
    assert_eq!(distinct.len(), 200);
}

/// Every animal that was there before the first page exactly once, later ones at most once.
pub async fn pages_reach_every_animal_once_while_others_are_added(repository: Repository) {
    for status in [None, Some(PetStatus::Sold)] {
        let mut before = BTreeSet::new();
        for _ in 0..50 {
            before.insert(add_with_status(&repository, status).await.id());
        }
        let writer = tokio::spawn({
            let repository = Arc::clone(&repository);
            async move {
                for _ in 0..50 {
                    add_with_status(&repository, status).await;
                }
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
                None => break,
            }
        }
        writer.await.expect("the writer");

        assert!(before.is_subset(&seen), "missing: {:?}", before.difference(&seen));
    }
}
