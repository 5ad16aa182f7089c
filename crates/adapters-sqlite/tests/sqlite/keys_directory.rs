//! Directories and lists of API keys: changes by other processes, and rows that are not valid.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    Scopes,
    ports::{AddPet, ApiKeyChangeError, ApiKeyStore, PetRepository, Readiness, StoreFailure},
    test_support::new_pet,
};
use prometheus_client::registry::Registry;
use tokio::task::spawn_blocking;

use crate::{
    child,
    keys_support::{Keys, add, find, revoke},
    sql::execute,
    store::{Store, log_of, open, wait_until},
};

/// Runs in another process.
pub(crate) fn revoke_a_key(path: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(SqliteApiKeyStore::new(open(path)).change(revoke("key"), "test")).expect("revoke");
}

/// Each of the creates changes the file, so that only the version shows which commit has changed the keys. The unit
/// tests of `ApiKeySnapshot` have the bound for revoked keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_creates_commit_a_key_that_another_process_revokes_is_refused() {
    let store = Store::new();
    let file = open(&store.path());
    let keys = SqliteApiKeyStore::new(file.clone());
    let directory = keys.start_directory(&mut Registry::default()).0;
    keys.change(add("key", "token"), "test").await.expect("add");
    let is_found = async || find(&directory, "token").await.expect("found").is_some();
    wait_until("the key is found", is_found).await;
    let (path, repository) = (store.path(), Arc::clone(&store.repository));
    let creates = tokio::spawn(async move {
        loop {
            repository.add(AddPet::new(new_pet())).await.expect("added");
        }
    });
    spawn_blocking(move || child::run(&[], "revoke", &path)).await.expect("revoked");
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
    let Keys { file, store, folder: _folder } = keys;
    drop((file, store));
    assert!(log.exists());
    drop(directory);
    end.await.expect("no panic");
    assert!(!log.exists());
}

/// Changes that make one key invalid.
const CHANGES: [&str; 3] = [
    "UPDATE api_keys SET label = '' WHERE id = 'bad'",
    "UPDATE api_keys SET label = 'a' || char(10) WHERE id = 'bad'",
    "PRAGMA foreign_keys = OFF; UPDATE api_keys SET id = 'b d' WHERE id = 'bad';
     UPDATE api_key_tokens SET api_key_id = 'b d' WHERE api_key_id = 'bad'",
];

async fn keys_with(change: &str) -> Keys {
    let keys = Keys::new();
    keys.add("good", "good-token").await;
    keys.add("bad", "bad-token").await;
    execute(&keys.path(), change);
    keys
}

#[tokio::test]
async fn an_invalid_key_is_named_by_a_list_and_is_an_error_for_its_token_only() {
    for change in CHANGES {
        let keys = keys_with(change).await;
        let directory = keys.directory();
        let found = find(&directory, "bad-token").await;
        assert!(matches!(found, Err(StoreFailure::Corrupt(_))), "{change}: {found:?}");
        assert!(find(&directory, "good-token").await.expect("found").is_some());
        assert_eq!(find(&directory, "unknown").await.expect("found"), None);
        let Err(StoreFailure::Corrupt(cause)) = keys.store.list().await else { panic!("{change}") };
        assert!(cause.to_string().contains("API key \"b"), "{cause}");
    }
}

#[tokio::test]
async fn an_invalid_key_can_be_revoked() {
    let keys = keys_with(CHANGES[0]).await;
    let Err(ApiKeyChangeError::Store(StoreFailure::Corrupt(_))) = keys.store.change(add("bad", "new"), "test").await
    else {
        panic!("it exists")
    };
    let revoked = keys.store.change(revoke("bad"), "test").await.expect("revoke").before.expect("the key").key;
    assert_eq!((revoked.label.as_str(), revoked.scopes), ("unreadable", Scopes::default()));
    assert_eq!(keys.store.list().await.expect("list").len(), 1);
}

#[tokio::test]
async fn malformed_values_of_a_token_are_reported() {
    for (change, part) in
        [("last_four = 'abcde'", "last four"), ("last_four = char(27)", "last four"), ("digest = x'00'", "digest")]
    {
        let keys = keys_with(&format!("UPDATE api_key_tokens SET {change} WHERE api_key_id = 'bad'")).await;
        let Err(StoreFailure::Corrupt(cause)) = keys.store.list().await else { panic!("{change}") };
        assert!(cause.to_string().contains(&format!("API key \"bad\": the {part}")), "{cause}");
        assert!(find(&keys.directory(), "good-token").await.expect("found").is_some());
    }
}

#[tokio::test]
async fn unknown_scopes_are_left_out_and_times_stay_printable() {
    let keys = keys_with(
        "UPDATE api_keys SET scopes = 'read,admin' WHERE id = 'bad';
         UPDATE api_key_tokens SET created_at = -1, expires_at = 9223372036854775807 WHERE api_key_id = 'bad'",
    )
    .await;
    let key = find(&keys.directory(), "bad-token").await.expect("found").expect("a key");
    assert_eq!(key.scopes.to_string(), "read");
    let listed = &keys.store.list().await.expect("list")[0].tokens[0];
    assert_eq!(listed.created, UNIX_EPOCH);
    assert_eq!(listed.expires, Some(UNIX_EPOCH + Duration::from_millis(253_402_300_799_999)));
}

/// A directory would not see the change.
#[tokio::test]
async fn without_the_version_no_key_is_changed() {
    let keys = keys_with("DELETE FROM api_key_state").await;
    for change in [revoke("bad"), add("new", "new")] {
        let changed = keys.store.change(change, "test").await;
        assert!(matches!(changed, Err(ApiKeyChangeError::Store(StoreFailure::Corrupt(_)))), "{changed:?}");
    }
    assert_eq!(keys.store.list().await.expect("list").len(), 2);
}
