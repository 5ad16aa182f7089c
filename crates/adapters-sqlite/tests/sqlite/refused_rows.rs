//! Rows that a trigger of the operator refuses: each fails alone, leaves nothing, and costs no commit of its own.

use animal_store_app::ports::AddPetError;

use crate::{
    group_commit::{begin, release},
    prelude::*,
};

/// Returns the number of commits in the log (<https://sqlite.org/fileformat.html#the_write_ahead_log>).
fn commits(path: &Path) -> usize {
    let log = read(log_of(path));
    let frames = log[32..].chunks_exact(24 + 4096);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

/// Adds pets in one batch, and returns the names of those that were added, in the order of their ids.
async fn add_in_a_batch(store: &Store, names: &[&str]) -> Vec<String> {
    let commits_before = commits(&store.path());
    let lock = store.lock();
    let adds = begin(store, names).await;
    let mut added = Vec::new();
    for result in release(lock, adds).await {
        match result {
            Ok(pet) => added.push(pet),
            Err(AddPetError::Store(StoreFailure::Unavailable(_) | StoreFailure::Corrupt(_))) => {}
            failed => panic!("{failed:?}"),
        }
    }
    assert_eq!(commits(&store.path()), commits_before + 1, "one commit");
    added.sort_by_key(Pet::id);
    let names = added.iter().map(|pet| pet.new_pet().name().as_str());
    names.map(str::to_owned).collect()
}

/// A storage with a trigger, and with a table that has a row.
fn with_trigger(trigger: &str) -> Store {
    let store = Store::new();
    let table = "CREATE TABLE one (id INTEGER PRIMARY KEY); INSERT INTO one VALUES (1)";
    let trigger = format!("{table}; CREATE TRIGGER refusal {trigger}");
    store.execute(&trigger);
    store
}

/// A storage that refuses bad pets.
fn that_refuses(moment: &str, statement: &str) -> Store {
    let when = format!("{moment} INSERT ON pets WHEN NEW.name = 'bad'");
    with_trigger(&format!("{when} BEGIN {statement}; END"))
}

const RAISES: [&str; 3] = [
    "SELECT RAISE(ABORT, 'no')",
    "SELECT RAISE(FAIL, 'no')",
    "SELECT RAISE(ROLLBACK, 'no')",
];

/// Every way in which a trigger can refuse a row. `OR ROLLBACK` and `OR FAIL` are those of a statement in the trigger.
const REFUSALS: [(&str, &str); 10] = [
    ("BEFORE", RAISES[0]),
    ("BEFORE", RAISES[1]),
    ("BEFORE", RAISES[2]),
    ("BEFORE", "SELECT RAISE(IGNORE)"),
    ("AFTER", RAISES[0]),
    ("AFTER", RAISES[1]),
    ("AFTER", RAISES[2]),
    ("AFTER", "INSERT OR FAIL INTO one VALUES (1)"),
    ("AFTER", "INSERT OR ROLLBACK INTO one VALUES (1)"),
    ("AFTER", "SELECT abs(-9223372036854775808)"),
];

#[tokio::test]
async fn a_row_that_a_trigger_refuses_fails_alone_in_one_commit() {
    let names = ["bad", "one", "bad", "bad", "two", "three", "bad"];
    for (moment, statement) in REFUSALS {
        let store = that_refuses(moment, statement);
        let added = add_in_a_batch(&store, &names).await;
        assert_eq!(added, ["one", "two", "three"], "{moment} {statement}");
        assert_eq!(store.names().await, added, "{moment} {statement}");
    }
}

#[tokio::test]
async fn a_batch_with_many_refused_rows_adds_all_others() {
    for raise in RAISES {
        let store = that_refuses("BEFORE", raise);
        let names: Vec<_> = (0..900).map(|number| ["good", "bad"][number % 2]).collect();
        assert_eq!(add_in_a_batch(&store, &names).await.len(), 450, "{raise}");
        assert_eq!(store.count().await, 450, "{raise}");
    }
}

#[tokio::test]
async fn a_quota_of_a_trigger_adds_as_many_pets_as_it_permits() {
    for raise in RAISES {
        let quota = "BEFORE INSERT ON pets WHEN (SELECT count(*) FROM pets) >= 3";
        let store = with_trigger(&format!("{quota} BEGIN {raise}; END"));
        let added = add_in_a_batch(&store, &["one", "two", "three", "four", "five"]).await;
        assert_eq!(store.names().await, added, "{raise}");
        assert_eq!(added.len(), 3, "{raise}");
    }
}

/// The second create finds the record of the first one, also in a batch that is repeated.
#[tokio::test]
async fn equal_idempotency_keys_beside_a_refused_row_add_one_pet() {
    for raise in RAISES {
        let store = that_refuses("AFTER", raise);
        let lock = store.lock();
        let adds = ["good", "bad", "bad", "good"].map(|name| {
            let repository = Arc::clone(&store.repository);
            tokio::spawn(async move { repository.add(request(name)).await })
        });
        tokio::task::yield_now().await;
        drop(lock);
        let mut replayed = Vec::new();
        for added in adds {
            let added = added.await.expect("no panic");
            replayed.push(added.ok().map(|added| added.replayed));
        }
        assert_eq!(replayed, [Some(false), None, None, Some(true)], "{raise}");
        assert_eq!(store.names().await, ["good"], "{raise}");
        let records = "SELECT count(*) FROM idempotency_keys";
        assert_eq!(store.number(records), 1, "{raise}");
    }
}

#[tokio::test]
async fn a_trigger_that_refuses_a_record_also_refuses_its_pet() {
    let store =
        with_trigger("AFTER INSERT ON idempotency_keys BEGIN INSERT INTO one VALUES (1); END");
    let added = store.repository.add(request("Rex")).await;
    assert_fails(added, UNAVAILABLE);
    assert_eq!(store.count().await, 0);
}
