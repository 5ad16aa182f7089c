//! Directories and lists of API keys: changes by other processes, and rows that are not valid.

use std::{path::Path, sync::Arc};

use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    ports::{AddPet, ApiKeyChangeError, ApiKeyStore, PetRepository, Readiness, StoreFailure},
    test_support::new_pet,
};
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

use crate::{
    child,
    keys_support::{Keys, add, find, revoke},
    sql::{execute, number},
    store::{Store, log_of, open, wait_until},
};

/// Runs in another process.
pub(crate) fn revoke_a_key(path: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime
        .block_on(SqliteApiKeyStore::new(open(path)).change(revoke("key"), "test"))
        .expect("revoke");
}

/// Each of the creates changes the file, so that only the version shows which commit has changed the keys. The unit
/// tests of `ApiKeySnapshot` have the bound for revoked keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_creates_commit_a_key_that_another_process_revokes_is_refused() {
    let store = Store::new();
    let file = open(&store.path());
    let keys = SqliteApiKeyStore::new(file.clone());
    let directory = keys.start_directory(&mut Registry::default()).0;
    keys.change(add("key", "token", None), "test")
        .await
        .expect("add");
    let is_found = async || find(&directory, "token").await.expect("found").is_some();
    wait_until("the key is found", is_found).await;
    let (path, repository) = (store.path(), Arc::clone(&store.repository));
    let creates = tokio::spawn(async move {
        loop {
            repository.add(AddPet::new(new_pet())).await.expect("added");
        }
    });
    spawn_blocking(move || child::run(&[], "revoke", &path))
        .await
        .expect("revoked");
    wait_until("the key is refused", async || !is_found().await).await;
    assert!(!creates.is_finished(), "no create fails");
    creates.abort();
}

/// A file is closed after its last connection.
#[tokio::test]
async fn a_directory_that_is_dropped_has_closed_its_connection() {
    let keys = Keys::new();
    let (directory, end) = keys.store.start_directory(&mut Registry::default());
    directory.check().await.expect("ready");
    let log = log_of(&keys.path());
    let Keys {
        file,
        store,
        folder: _folder,
    } = keys;
    drop((file, store));
    assert!(log.exists());
    drop(directory);
    end.await.expect("no panic");
    assert!(!log.exists());
}

#[tokio::test]
async fn an_invalid_key_is_an_error_for_its_token_only_and_can_be_revoked() {
    let keys = Keys::new();
    for id in ["good", "bad"] {
        keys.add(id, id).await;
    }
    execute(
        &keys.path(),
        "UPDATE api_keys SET label = '' WHERE id = 'bad'",
    );
    let directory = keys.directory();
    let found = find(&directory, "bad").await;
    assert!(matches!(found, Err(StoreFailure::Corrupt(_))), "{found:?}");
    assert!(find(&directory, "good").await.expect("found").is_some());
    let Err(StoreFailure::Corrupt(cause)) = keys.store.list().await else {
        panic!("it is named")
    };
    assert!(cause.to_string().contains("API key \"bad\""), "{cause}");
    keys.store
        .change(revoke("bad"), "test")
        .await
        .expect("revoked");
    assert_eq!(keys.store.list().await.expect("list").len(), 1);
}

/// A directory would not see the change.
#[tokio::test]
async fn without_the_version_no_key_is_changed() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    execute(&keys.path(), "DELETE FROM api_key_state");
    for change in [revoke("key"), add("new", "new", None)] {
        let changed = keys.store.change(change, "test").await;
        assert!(
            matches!(
                changed,
                Err(ApiKeyChangeError::Store(StoreFailure::Corrupt(_)))
            ),
            "{changed:?}"
        );
    }
    assert_eq!(keys.store.list().await.expect("list").len(), 1);
}

/// Other processes restore another store into the file, and an older state of it that gets other changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_store_that_is_restored_into_the_file_only_its_own_keys_are_accepted() {
    for (ids, version) in [(&["s1", "s2"][..], 3), (&["s1", "s2", "s3"], 3)] {
        let other = Keys::new();
        for id in ["p1", "p2", "p3"] {
            other.add(id, id).await;
        }
        let versions = "SELECT version FROM api_key_state";
        assert_eq!(number(&other.path(), versions), version);
        let keys = Keys::new();
        let directory = keys.directory();
        for id in ids {
            keys.add(id, id).await;
        }
        let is_found = async |id: &str| {
            let found = find(&directory, id).await;
            found.is_ok_and(|found| found.is_some())
        };
        wait_until("s2 is found", async || is_found("s2").await).await;
        let source = other.path().display().to_string();
        let tables = "api_key_state api_key_marks api_keys api_key_tokens".split(' ');
        let copies = tables.map(|table| {
            format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM other.{table};")
        });
        let copies: String = copies.collect();
        execute(
            &keys.path(),
            &format!(
                "PRAGMA foreign_keys = OFF; ATTACH '{source}' AS other; BEGIN IMMEDIATE; {copies} COMMIT"
            ),
        );
        wait_until("p1 is found", async || is_found("p1").await).await;
        for id in ids {
            assert!(find(&directory, id).await.expect("found").is_none(), "{id}");
        }
        keys.store
            .change(revoke("p1"), "test")
            .await
            .expect("revoked");
        wait_until("p1 is refused", async || !is_found("p1").await).await;
        assert!(is_found("p2").await);
    }
}

/// The full numbers of the state are not there.
#[tokio::test]
async fn a_store_without_all_of_its_keys_is_not_believed() {
    let keys = Keys::new();
    for id in ["a", "b"] {
        keys.add(id, id).await;
    }
    execute(
        &keys.path(),
        "DELETE FROM api_key_tokens WHERE api_key_id = 'a'",
    );
    let directory = keys.directory();
    let found = find(&directory, "b").await;
    assert!(
        matches!(found, Err(StoreFailure::Unavailable(_))),
        "{found:?}"
    );
    // As after a change by an older program: the numbers are counted.
    execute(
        &keys.path(),
        "UPDATE api_key_state SET version = version + 1",
    );
    wait_until("b is found", async || {
        find(&directory, "b")
            .await
            .is_ok_and(|found| found.is_some())
    })
    .await;
}

/// A trigger of another program may refuse the row.
#[tokio::test]
async fn a_revocation_that_cannot_be_recorded_is_done() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    execute(&keys.path(), "ALTER TABLE api_key_changes RENAME TO other");
    keys.store
        .change(revoke("key"), "test")
        .await
        .expect("revoked");
    assert_eq!(keys.store.list().await.expect("list"), []);
}
