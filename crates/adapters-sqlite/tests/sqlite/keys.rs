//! API keys in a file of their own: locks, commits of pets, and the end of a directory. `contracts.rs` has the rules of
//! the store.

use animal_store_adapter_kit::ApiKeySnapshot;
use animal_store_app::{
    ApiKey, ApiKeyDigest,
    ports::{ApiKeyChangeError, ApiKeyDirectory, StoreResult},
    test_support::{api_key, key_changes::new_token},
};
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

use crate::{child, prelude::*};

/// Returns a store in a folder of its own.
pub(crate) fn new_keys() -> (SqliteApiKeyStore, TempDir) {
    let (folder, path) = new_path();
    (SqliteApiKeyStore::new(open(&path)), folder)
}

pub(crate) fn directory_of(keys: &SqliteApiKeyStore) -> ApiKeySnapshot {
    keys.start_directory(&mut Registry::default()).0
}

pub(crate) async fn find(
    directory: &ApiKeySnapshot,
    token: &str,
) -> StoreResult<Option<Arc<ApiKey>>> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}

#[tokio::test]
async fn a_change_that_gets_no_write_lock_in_time_changes_nothing_and_the_next_one_is_applied() {
    let (keys, folder) = new_keys();
    let path = folder.path().join("pets.db");
    add_key(&keys, "key").await;
    let file = SqliteFile::open(&path, FileUse::Write, Duration::from_millis(100));
    let store = SqliteApiKeyStore::new(file.expect("a file"));
    let other = sql::lock(&path);
    let revoked = store.change(key_changes::revoke("key"), "test").await;
    // It finds the other key under the lock only: of two first keys at one moment, one is added.
    let first = new_token("first", None);
    let added = store.add_first(api_key("first"), first, "test").await;
    for outcome in [revoked.map(drop), added.map(drop)] {
        let Err(ApiKeyChangeError::Store(StoreFailure::Unavailable(cause))) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(cause.to_string().contains("pets.db"), "{cause}");
    }
    store.check_writable().await.expect_err("locked");
    let listed = store.list().await.expect("a reader needs no lock");
    assert_eq!(listed.len(), 1);
    drop(other);
    store.check_writable().await.expect("not locked");
    revoke_key(&store, "key").await;
}

/// Readers of the file would have to read its pages again.
#[tokio::test]
async fn a_refused_change_writes_nothing() {
    let (keys, folder) = new_keys();
    add_key(&keys, "key").await;
    let mut reader = sql::connect(&folder.path().join("pets.db"));
    let mut version = || sql::value(&mut reader, "PRAGMA data_version");
    let before = version();
    let taken = keys.change(key_changes::add("key", "other", None), "test");
    taken.await.expect_err("the id is taken");
    let first = keys.add_first(api_key("first"), new_token("first", None), "test");
    assert!(!first.await.expect("no failure"));
    assert_eq!(version(), before);
    revoke_key(&keys, "key").await;
    assert_ne!(version(), before);
}

/// Runs in another process.
pub(crate) async fn revoke_a_key(path: &Path) {
    revoke_key(&SqliteApiKeyStore::new(open(path)), "key").await;
}

/// Each of the creates changes the file, so that only the version shows which commit has changed the keys. The unit
/// tests of `ApiKeySnapshot` have the bound for revoked keys.
#[tokio::test(flavor = "multi_thread")]
async fn while_creates_commit_a_key_that_another_process_revokes_is_refused() {
    let store = Store::new();
    let path = store.path();
    let keys = SqliteApiKeyStore::new(open(&path));
    let directory = directory_of(&keys);
    add_key(&keys, "key").await;
    let is_found = async || find(&directory, "key").await.expect("found").is_some();
    wait_until("the key is found", is_found).await;

    let repository = Arc::clone(&store.repository);
    let creates = tokio::spawn(async move {
        loop {
            repository.add(AddPet::new(new_pet())).await.expect("added");
        }
    });
    let revoked = spawn_blocking(move || child::run(&[], "revoke", &path));
    revoked.await.expect("revoked");
    wait_until("the key is refused", async || !is_found().await).await;
    assert!(!creates.is_finished(), "no create fails");
    creates.abort();
}

/// A file is closed after its last connection.
#[tokio::test]
async fn a_directory_that_is_dropped_has_closed_its_connection() {
    let (keys, folder) = new_keys();
    let (directory, end) = keys.start_directory(&mut Registry::default());
    directory.check().await.expect("ready");
    let log = log_of(&folder.path().join("pets.db"));
    drop(keys);
    assert!(log.exists());
    drop(directory);
    end.await.expect("no panic");
    assert!(!log.exists());
}
