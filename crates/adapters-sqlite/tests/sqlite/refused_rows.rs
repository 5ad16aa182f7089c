//! Rows that a trigger of the operator refuses: each fails alone, leaves nothing, and costs no commit of its own.

use std::{fs, path::Path};

use animal_store_app::{
    IdempotencyKey,
    ports::{AddPet, AddPetError, PetRepository, StoreFailure},
    test_support::{api_key_id, join_tasks, pet_named},
};
use animal_store_domain::Pet;
use diesel::connection::SimpleConnection;

use crate::{
    group_commit::begin,
    sql,
    store::{Store, log_of},
};

const GOOD_AND_BAD: [&str; 7] = ["bad", "one", "bad", "bad", "two", "three", "bad"];

/// Returns the number of commits in the log (<https://sqlite.org/fileformat.html#the_write_ahead_log>).
fn commits(path: &Path) -> usize {
    let log = fs::read(log_of(path)).expect("a log");
    let frames = log[32..].chunks_exact(24 + 4096);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

/// Adds pets in one batch, and returns the names of those that were added, in the order of their ids.
async fn add_in_a_batch(store: &Store, names: &[&str]) -> Vec<String> {
    let commits_before = commits(&store.path());
    let mut lock = sql::lock(&store.path());
    let adds = begin(store, names.iter().map(|&name| name.to_owned())).await;
    lock.batch_execute("ROLLBACK").expect("rolled back");
    let mut added = Vec::new();
    for result in join_tasks(adds).await {
        match result.expect("no panic") {
            Ok(pet) => added.push(pet),
            Err(AddPetError::Store(StoreFailure::Unavailable(_) | StoreFailure::Corrupt(_))) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(commits(&store.path()), commits_before + 1, "one commit");
    added.sort_by_key(Pet::id);
    let names = added.iter().map(|pet| pet.new_pet().name().as_str());
    names.map(str::to_owned).collect()
}

/// Every way in which a trigger can refuse a row. `OR ROLLBACK` and `OR FAIL` are those of a statement in the trigger.
const REFUSALS: [&str; 10] = [
    "BEFORE INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
    "BEFORE INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE(FAIL, 'no'); END",
    "BEFORE INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
    "BEFORE INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE(IGNORE); END",
    "AFTER INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
    "AFTER INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE(FAIL, 'no'); END",
    "AFTER INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
    "AFTER INSERT ON pets WHEN NEW.name = 'bad' BEGIN INSERT OR FAIL INTO one VALUES (1); END",
    "AFTER INSERT ON pets WHEN NEW.name = 'bad' BEGIN INSERT OR ROLLBACK INTO one VALUES (1); END",
    "AFTER INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT abs(-9223372036854775808); END",
];

#[tokio::test]
async fn a_row_that_a_trigger_refuses_fails_alone_in_one_commit() {
    for refusal in REFUSALS {
        let store = Store::new();
        let table = "CREATE TABLE one (id INTEGER PRIMARY KEY); INSERT INTO one VALUES (1)";
        sql::execute(
            &store.path(),
            &format!("{table}; CREATE TRIGGER refusal {refusal}"),
        );
        let added = add_in_a_batch(&store, &GOOD_AND_BAD).await;
        assert_eq!(added, ["one", "two", "three"], "{refusal}");
        assert_eq!(store.names().await, added, "{refusal}");
    }
}

#[tokio::test]
async fn a_batch_with_many_refused_rows_adds_all_others() {
    for raise in ["ABORT", "FAIL", "ROLLBACK"] {
        let store = Store::new();
        let trigger = format!(
            "CREATE TRIGGER refusal BEFORE INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE({raise}, 'no'); END"
        );
        sql::execute(&store.path(), &trigger);
        let names: Vec<_> = (0..900).map(|number| ["good", "bad"][number % 2]).collect();
        assert_eq!(add_in_a_batch(&store, &names).await.len(), 450, "{raise}");
        assert_eq!(store.count().await, 450, "{raise}");
    }
}

#[tokio::test]
async fn a_quota_of_a_trigger_adds_as_many_pets_as_it_permits() {
    for raise in ["ABORT", "FAIL", "ROLLBACK"] {
        let store = Store::new();
        let trigger = format!(
            "CREATE TRIGGER quota BEFORE INSERT ON pets WHEN (SELECT count(*) FROM pets) >= 3
             BEGIN SELECT RAISE({raise}, 'no'); END"
        );
        sql::execute(&store.path(), &trigger);
        let added = add_in_a_batch(&store, &["one", "two", "three", "four", "five"]).await;
        assert_eq!(store.names().await, added, "{raise}");
        assert_eq!(added.len(), 3, "{raise}");
    }
}

/// The second create finds the record of the first one, also in a batch that is repeated.
#[tokio::test]
async fn equal_idempotency_keys_beside_a_refused_row_add_one_pet() {
    for raise in ["ABORT", "FAIL", "ROLLBACK"] {
        let store = Store::new();
        let trigger = format!(
            "CREATE TRIGGER refusal AFTER INSERT ON pets WHEN NEW.name = 'bad' BEGIN SELECT RAISE({raise}, 'no'); END"
        );
        sql::execute(&store.path(), &trigger);
        let mut lock = sql::lock(&store.path());
        let adds: Vec<_> = ["good", "bad", "bad", "good"]
            .into_iter()
            .map(|name| {
                let repository = store.repository.clone();
                let request = AddPet {
                    pet: pet_named(name),
                    idempotency_key: Some(IdempotencyKey::new(api_key_id("key"), name)),
                };
                tokio::spawn(async move { repository.add(request).await })
            })
            .collect();
        tokio::task::yield_now().await;
        lock.batch_execute("ROLLBACK").expect("rolled back");
        let added = join_tasks(adds).await;
        let replayed: Vec<_> = added
            .into_iter()
            .map(|added| added.expect("no panic").ok().map(|added| added.replayed))
            .collect();
        assert_eq!(replayed, [Some(false), None, None, Some(true)], "{raise}");
        assert_eq!(store.names().await, ["good"], "{raise}");
        let records = "SELECT count(*) FROM idempotency_keys";
        assert_eq!(sql::number(&store.path(), records), 1, "{raise}");
    }
}
