//! Changes of API keys: what they wait for, and what they leave in the file.

use std::{
    sync::Barrier,
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use animal_store_adapters_sqlite::{FileUse, SqliteApiKeyStore, SqliteFile};
use animal_store_app::{
    ApiKeyChange, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore, ApiKeyUse, ApiKeyUses, StoreFailure},
    test_support::api_key,
};

use crate::{
    keys_support::{Keys, new_token, revoke},
    sql::{lock, number},
    store::open,
};

#[tokio::test]
async fn a_change_that_gets_no_write_lock_in_time_changes_nothing() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    let store = SqliteApiKeyStore::new(
        SqliteFile::open(&keys.path(), FileUse::Write, Duration::from_millis(100)).expect("a file"),
    );
    let _other = lock(&keys.path());
    let revoked = store.change(revoke("key")).await;
    let Err(ApiKeyChangeError::Store(StoreFailure::Unavailable(cause))) = revoked else { panic!("{revoked:?}") };
    assert!(cause.to_string().contains("store.db"), "{cause}");
    assert_eq!(store.list().await.expect("list").len(), 1, "a reader needs no lock");
}

#[tokio::test]
async fn after_any_change_no_first_key_is_added() {
    let keys = Keys::new();
    assert!(keys.store.is_new().await.expect("read"));
    keys.add("key", "token").await;
    assert!(!keys.store.add_first(api_key("first"), new_token("first")).await.expect("add"));
    keys.store.change(revoke("key")).await.expect("revoke");
    assert!(!keys.store.is_new().await.expect("read"));
    assert!(!keys.store.add_first(api_key("first"), new_token("first")).await.expect("add"));
    assert_eq!(keys.store.list().await.expect("list"), []);
}

#[test]
fn of_two_first_keys_at_one_moment_one_is_added() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for round in 0..10 {
        let keys = Keys::new();
        let barrier = Barrier::new(2);
        let add = |id: &str| {
            let store = SqliteApiKeyStore::new(open(&keys.path()));
            barrier.wait();
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(store.add_first(api_key(id), new_token(id))).expect("add")
        };
        let added =
            thread::scope(|scope| ["a", "b"].map(|id| scope.spawn(move || add(id))).map(ScopedJoinHandle::join));
        let added = added.map(|added| added.expect("no panic"));
        let listed = runtime.block_on(keys.store.list()).expect("list");
        assert_eq!(added.iter().filter(|added| **added).count(), 1, "{round}: {added:?}");
        assert_eq!(listed.len(), 1, "{round}");
        assert_eq!(listed[0].key.id.as_str(), if added[0] { "a" } else { "b" }, "{round}");
    }
}

#[tokio::test]
async fn expired_tokens_are_deleted_by_the_next_change() {
    let keys = Keys::new();
    let token = NewToken { lifetime: Some(Duration::from_millis(1)), ..new_token("token-a") };
    keys.store.change(ApiKeyChange::Add(api_key("a"), token)).await.expect("add");
    tokio::time::sleep(Duration::from_millis(10)).await;
    keys.add("b", "token-b").await;
    assert_eq!(number(&keys.path(), "SELECT count(*) FROM api_key_tokens"), 1);
    assert_eq!(number(&keys.path(), "SELECT count(*) FROM api_key_tokens WHERE api_key_id = 'b'"), 1);
}

/// The row of the key stays, so that directories see the change.
#[tokio::test]
async fn a_revocation_deletes_the_tokens_and_uses_of_the_key() {
    let keys = Keys::new();
    let key = keys.add("key", "token").await;
    let (uses, writer_end) = keys.uses(Duration::from_mins(1));
    uses.note(&key.id, ApiKeyUse::Request);
    drop(uses);
    writer_end.await.expect("no panic");
    assert_eq!(number(&keys.path(), "SELECT count(*) FROM api_key_uses"), 1);
    keys.store.change(revoke("key")).await.expect("revoke");
    for table in ["api_key_tokens", "api_key_uses"] {
        assert_eq!(number(&keys.path(), &format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(number(&keys.path(), "SELECT version FROM api_keys"), 2);
}
