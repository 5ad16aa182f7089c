//! API keys in a file of their own: locks, commits of pets, and the end of a directory. `contracts.rs` has the rules of
//! the store.

use animal_store_adapter_kit::test_support::wait_for;
use animal_store_app::test_support::{api_key, key_changes::new_token};
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

use crate::{child, prelude::*};

/// Returns a store in a folder of its own.
pub(crate) fn new_keys() -> (SqliteApiKeyStore, TempDir) {
    let (folder, path) = new_path();
    (SqliteApiKeyStore::new(open(&path)), folder)
}

#[tokio::test]
async fn a_change_that_gets_no_write_lock_in_time_changes_nothing_and_the_next_one_is_applied() {
    let (keys, folder) = new_keys();
    let path = path_in(&folder);
    keys.add(&["key"]).await;
    let file = SqliteFile::open(&path, FileUse::Write, Duration::from_millis(100));
    let store = SqliteApiKeyStore::new(file.expect("a file"));
    let other = sql::lock(&path);
    let revoked = store.change(key_changes::revoke("key"), "test").await;
    // It finds the other key under the lock only: of two first keys at one moment, one is added.
    let first = new_token("first", None);
    let added = store.add_first(api_key("first"), first, "test").await;
    for outcome in [revoked.map(drop), added.map(drop)] {
        let cause = assert_fails(outcome, UNAVAILABLE);
        assert!(cause.contains("pets.db"), "{cause}");
    }
    store.check_writable().await.expect_err("locked");
    let listed = store.list().await.expect("a reader needs no lock");
    assert_eq!(listed.len(), 1);
    drop(other);
    store.check_writable().await.expect("not locked");
    store.revoke("key").await;
}

/// Readers of the file would have to read its pages again.
#[tokio::test]
async fn a_refused_change_writes_nothing() {
    let (keys, folder) = new_keys();
    keys.add(&["key"]).await;
    let mut reader = sql::connect(&path_in(&folder));
    let mut version = || sql::value(&mut reader, "PRAGMA data_version");
    let before = version();
    let taken = keys.change(key_changes::add("key", "other", None), "test");
    taken.await.expect_err("the id is taken");
    let first = keys.add_first(api_key("first"), new_token("first", None), "test");
    assert!(!first.await.expect("no failure"));
    assert_eq!(version(), before);
    keys.revoke("key").await;
    assert_ne!(version(), before);
}

/// Runs in another process.
pub(crate) async fn revoke_a_key(path: &Path) {
    SqliteApiKeyStore::new(open(path)).revoke("key").await;
}

/// Each of the creates changes the file, so that only the version shows which commit has changed the keys. The unit
/// tests of `ApiKeySnapshot` have the bound for revoked keys.
#[tokio::test]
async fn while_creates_commit_a_key_that_another_process_revokes_is_refused() {
    let store = Store::new();
    let path = store.path();
    let keys = SqliteApiKeyStore::new(open(&path));
    let directory = keys.directory();
    keys.add(&["key"]).await;
    wait_for(&directory, "key", true).await;

    let repository = Arc::clone(&store.repository);
    let creates = tokio::spawn(async move {
        loop {
            repository.add(AddPet::new(new_pet())).await.expect("added");
        }
    });
    let revoked = spawn_blocking(move || child::run(&[], "revoke", &path));
    revoked.await.expect("revoked");
    wait_for(&directory, "key", false).await;
    assert!(!creates.is_finished(), "no create fails");
    creates.abort();
}

/// A file is closed after its last connection.
#[tokio::test]
async fn a_directory_that_is_dropped_has_closed_its_connection() {
    let (keys, folder) = new_keys();
    let (directory, end) = keys.start_directory(&mut Registry::default());
    directory.check().await.expect("ready");
    let log = log_of(&path_in(&folder));
    drop(keys);
    assert!(log.exists());
    drop(directory);
    end.await.expect("no panic");
    assert!(!log.exists());
}
