//! Adding pets.

use std::{pin::Pin, time::SystemTime};

use animal_store_domain::PetId;

use super::{BulkAccess, CREATED, batch, bulk_pet, id, rex, stored, time, various};
use crate::{
    ports::{AddPet, AddedBulkPet, BulkPet, BulkStorageError, PetBatch},
    test_support::{join_tasks, pet_named},
};

/// This holds for every member and for the creation time.
pub async fn pets_are_returned_exactly_as_they_were_added(access: BulkAccess) {
    let pets = various();
    let added = access.add(pets.iter().rev().cloned()).await;
    let expected = pets.iter().rev().map(|pet| AddedBulkPet::Added(pet.id.expect("an id")));
    assert_eq!(added, expected.collect::<Vec<_>>());
    assert_eq!(access.all().await, pets.iter().map(stored).collect::<Vec<_>>());
}

/// A batch is part of the catalogue that the service serves.
pub async fn a_repository_finds_the_pets_of_a_batch(access: BulkAccess) {
    let pets = various();
    access.add(pets.clone()).await;
    let expected: Vec<_> = pets.iter().map(|pet| stored(pet).pet).collect();
    assert_eq!(access.pets.list(None, None, 100).await.expect("list"), expected);
    for pet in expected {
        assert_eq!(access.pets.find(pet.id()).await.expect("find"), Some(pet));
    }
}

/// Pets without an id get ascending ids in their order.
pub async fn a_pet_without_an_id_gets_the_next_one(access: BulkAccess) {
    let last = access.create("Rex").await.id();
    let names = ["a", "b", "c"];
    let added = access.add(names.map(|name| bulk_pet(None, pet_named(name)))).await;
    let all = access.all().await;
    assert!(all[0].pet.id() == last && all.len() == 4, "{all:?}");
    for ((stored, name), added) in all[1..].iter().zip(names).zip(added) {
        assert_eq!(*stored.pet.new_pet(), pet_named(name));
        assert_eq!(added, AddedBulkPet::Added(stored.pet.id()));
        assert_eq!(stored.created_at, time(CREATED));
    }
}

/// The difference is less than a minute.
pub async fn a_pet_without_a_creation_time_is_created_now(access: BulkAccess) {
    access.add([BulkPet { created_at: None, ..rex(1) }, BulkPet { created_at: None, ..rex(None) }]).await;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    for stored in access.all().await {
        let micros = i128::from(stored.created_at.micros()) - i128::try_from(since.as_micros()).expect("before 9999");
        assert!(micros.abs() < 60_000_000, "{stored:?}");
    }
}

/// A batch of 10,000 pets is not limited by the number of parameters of a statement.
pub async fn a_large_batch_is_added_at_once(access: BulkAccess) {
    access.add((1..=10_000).map(rex)).await;
    assert_eq!(access.ids().await, (1..=10_000).collect::<Vec<_>>());
    access.add((1..=10_000).map(|_| rex(None))).await;
    assert_eq!(access.all().await.len(), 20_000);
}

/// Without a creation time, only the pets are compared.
pub async fn a_pet_that_exists_is_not_added_again(access: BulkAccess) {
    access.add([rex(1), rex(3)]).await;
    let before = access.all().await;
    let again = access.add([rex(3), BulkPet { created_at: None, ..rex(1) }]).await;
    assert_eq!(again, [AddedBulkPet::Exists; 2]);
    assert_eq!(access.all().await, before);
    assert_eq!(access.add([rex(1), rex(2)]).await, [AddedBulkPet::Exists, AddedBulkPet::Added(id(2))]);
}

/// A pet is another one if any member or the creation time differs. The rest of the batch is added.
pub async fn a_taken_id_keeps_its_pet(access: BulkAccess) {
    access.add(various()).await;
    let before = access.all().await;
    for taken in various() {
        let others = [
            BulkPet { pet: pet_named("Other"), ..taken.clone() },
            BulkPet { created_at: Some(time(77)), ..taken.clone() },
        ];
        for other in others {
            assert_eq!(access.add([other]).await, [AddedBulkPet::IdTaken]);
        }
    }
    assert_eq!(access.all().await, before);
    let taken = BulkPet { pet: pet_named("Other"), ..various()[0].clone() };
    assert_eq!(access.add([taken, rex(2)]).await, [AddedBulkPet::IdTaken, AddedBulkPet::Added(id(2))]);
}

/// Nothing of the batch is added.
pub async fn a_taken_id_refuses_the_batch_if_the_batch_says_so(access: BulkAccess) {
    access.add([rex(2)]).await;
    let before = access.all().await;
    let pets = [rex(1), bulk_pet(2, pet_named("Other")), rex(None), rex(3)];
    let refused = access.bulk.add_pets(PetBatch { refuse_taken_ids: true, ..batch(pets) }).await;
    assert!(matches!(refused, Err(BulkStorageError::IdTaken(taken)) if taken == id(2)), "{refused:?}");
    assert_eq!(access.all().await, before);

    let same = access.bulk.add_pets(PetBatch { refuse_taken_ids: true, ..batch([rex(1), rex(2)]) }).await;
    assert_eq!(same.expect("add_pets"), [AddedBulkPet::Added(id(1)), AddedBulkPet::Exists]);
}

/// A batch with lower ids changes nothing about that.
pub async fn the_next_id_is_greater_than_every_id_of_a_batch(access: BulkAccess) {
    access.create("Rex").await;
    access.add([rex(1_000_000), rex(500)]).await;
    access.add([rex(7)]).await;
    let next = access.create("Rex").await.id();
    assert!(next > id(1_000_000), "{next:?}");
    assert!(matches!(access.add([rex(None)]).await[..], [AddedBulkPet::Added(later)] if later > next));
}

/// Every create gets an id, and every pet is stored under its id.
pub async fn concurrent_creates_and_batches_never_share_an_id(access: BulkAccess) {
    let creates = (0..4).map(|_| {
        let pets = access.pets.clone();
        async move {
            let mut ids = Vec::new();
            for _ in 0..50 {
                ids.push(pets.add(AddPet::new(pet_named("Created"))).await.expect("add").pet.id());
            }
            ids
        }
    });
    let bulk = access.bulk.clone();
    let batches = async move {
        let mut ids: Vec<PetId> = Vec::new();
        for first in (1..=20).map(|batch| batch * 20) {
            let added = bulk.add_pets(batch((first..first + 10).map(rex).chain([rex(None)]))).await.expect("add_pets");
            ids.extend(added.iter().filter_map(|added| match added {
                AddedBulkPet::Added(id) => Some(*id),
                _ => None,
            }));
        }
        ids
    };
    let tasks = creates.map(|task| Box::pin(task) as Pin<Box<dyn Future<Output = _> + Send>>);
    let mut ids: Vec<PetId> = join_tasks(tasks.chain([Box::pin(batches) as _])).await.concat();
    let all: Vec<_> = access.all().await.iter().map(|stored| stored.pet.id()).collect();
    ids.sort_unstable();
    assert_eq!(all, ids);
}
