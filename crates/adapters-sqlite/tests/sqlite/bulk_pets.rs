//! Pets that are added in batches, and the progress of imports.

use animal_store_adapters_sqlite::{SqliteBulkStorage, SqliteFile};
use animal_store_app::{
    ports::{AddedBulkPet, BulkStorage, BulkStorageError, PetBatch},
    test_support::join_tasks,
};

use crate::{
    bulk_support::{TEST_TIMEOUT, batch, bulk_pet, id, names, new_storage, open, step},
    sql::{execute, lock},
};

use AddedBulkPet::{Added, Exists};

/// A batch takes several statements. Pets without an id get greater ids than all others.
#[tokio::test]
async fn a_batch_of_many_pets_with_and_without_ids_is_added_in_its_order() {
    let (storage, _folder) = new_storage();
    let given = |number: i64| (number % 2 == 0).then_some(1200 - number);
    let pets = (0..1200).map(|number| bulk_pet(given(number), &number.to_string()));
    let added = storage.add_pets(batch(pets.clone())).await.expect("added");
    let ids = (0..1200).map(|number| Added(id(given(number).unwrap_or(1201 + number / 2))));
    assert!(added.into_iter().eq(ids));

    let names = names(&storage).await;
    assert_eq!((names.len(), &names[0], &names[1199]), (1200, &(2, "1198".into()), &(1800, "1199".into())));
    let again = storage.add_pets(batch(pets.filter(|pet| pet.id.is_some()))).await.expect("added");
    assert!(again.iter().all(|added| *added == Exists), "{again:?}");
    let next = storage.add_pets(batch([bulk_pet(None, "next")])).await.expect("added");
    assert_eq!(next, [Added(id(1801))]);
}

/// This is the end of SQLite's ids.
#[tokio::test]
async fn after_the_greatest_id_no_pet_is_added() {
    let (storage, _folder) = new_storage();
    storage.add_pets(batch([bulk_pet(Some(i64::MAX), "last")])).await.expect("added");
    storage.add_pets(batch([bulk_pet(None, "a")])).await.expect_err("no id is left");
    assert_eq!(names(&storage).await, [(i64::MAX, "last".into())]);
}

/// No id is assigned twice before that.
#[tokio::test]
async fn if_too_few_ids_are_left_no_pet_of_a_batch_is_added() {
    let (storage, _folder) = new_storage();
    storage.add_pets(batch([bulk_pet(Some(i64::MAX - 1), "given")])).await.expect("added");
    storage.add_pets(batch([bulk_pet(None, "a"), bulk_pet(None, "b")])).await.expect_err("one id is left");
    assert_eq!(names(&storage).await, [(i64::MAX - 1, "given".into())]);
    let last = storage.add_pets(batch([bulk_pet(None, "c")])).await.expect("added");
    assert_eq!(last, [Added(id(i64::MAX))]);
}

/// Each process counts on the progress that it recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_imports_of_one_file_one_adds_its_pets() {
    let (storage, folder) = new_storage();
    let results = join_tasks((0..8).map(|_| {
        let storage = SqliteBulkStorage::new(open(&folder.path().join("store.db")));
        let batch = PetBatch { step: Some(step(1, None, 1)), ..batch([bulk_pet(None, "a")]) };
        async move { storage.add_pets(batch).await }
    }));
    let results = results.await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(BulkStorageError::ImportConflict))));
    assert_eq!(names(&storage).await.len(), 1);
}

/// After the failure the storage can be used again.
#[tokio::test]
async fn if_another_connection_keeps_the_write_lock_a_batch_fails_and_adds_nothing() {
    let (_, folder) = new_storage();
    let path = folder.path().join("store.db");
    let timeout = TEST_TIMEOUT / 200;
    let file = SqliteFile::open(&path, timeout).expect("a file");
    let storage = SqliteBulkStorage::new(file);
    let other = lock(&path);
    let error = storage.add_pets(batch([bulk_pet(None, "a")])).await.expect_err("locked");
    assert!(matches!(error, BulkStorageError::Unavailable(_)), "{error:?}");

    drop(other);
    storage.add_pets(batch([bulk_pet(None, "b")])).await.expect("added");
    assert_eq!(names(&storage).await, [(1, "b".into())]);
}

#[tokio::test]
async fn an_invalid_row_is_reported_with_its_id() {
    for (sql, problem) in [
        ("INSERT INTO pets VALUES (5, ' ', 1, NULL, 0)", "id 5"),
        ("INSERT INTO pets VALUES (-5, 'Rex', 1, NULL, 0)", "id -5"),
        ("INSERT INTO pets VALUES (5, 'Rex', 1, NULL, -1)", "id 5"),
    ] {
        let (storage, folder) = new_storage();
        execute(&folder.path().join("store.db"), sql);
        let pets = storage.snapshot().await.expect("a snapshot").pets(None, 10).await;
        let Err(BulkStorageError::Corrupt(cause)) = pets else { panic!("{sql}: {pets:?}") };
        assert!(cause.to_string().contains(problem), "{cause}");
    }
}
