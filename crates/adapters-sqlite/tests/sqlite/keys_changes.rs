//! Changes of API keys and of their uses: what they wait for, and what they leave in the file.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_adapters_sqlite::{FileUse, SqliteApiKeyStore, SqliteFile};
use animal_store_app::{
    ApiKeyId,
    ports::{ApiKeyChangeError, ApiKeyStore, ApiKeyUse, ApiKeyUses, StoreFailure},
    test_support::api_key,
};

use crate::{
    keys_support::{Keys, new_token, revoke},
    sql::{execute, lock, number},
};

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_change_that_gets_no_write_lock_in_time_changes_nothing_and_the_next_one_is_applied() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    let store = SqliteApiKeyStore::new(
        SqliteFile::open(&keys.path(), FileUse::Write, Duration::from_millis(100)).expect("a file"),
    );
    let other = lock(&keys.path());
    let revoked = store.change(revoke("key"), "test").await.map(drop);
    // It finds the other key under the lock only: of two first keys at one moment, one is added.
    let added = store
        .add_first(api_key("first"), new_token("first", None), "test")
        .await
        .map(drop);
    for outcome in [revoked, added] {
        let Err(ApiKeyChangeError::Store(StoreFailure::Unavailable(cause))) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(cause.to_string().contains("store.db"), "{cause}");
    }
    store.check_writable().await.expect_err("locked");
    assert_eq!(
        store.list().await.expect("list").len(),
        1,
        "a reader needs no lock"
    );
    drop(other);
    store.check_writable().await.expect("not locked");
    store.change(revoke("key"), "test").await.expect("revoked");
}

#[tokio::test]
async fn after_any_change_no_first_key_is_added() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    assert!(
        !keys
            .store
            .add_first(api_key("first"), new_token("first", None), "test")
            .await
            .expect("add")
    );
    keys.store
        .change(revoke("key"), "test")
        .await
        .expect("revoke");
    assert!(
        !keys
            .store
            .add_first(api_key("first"), new_token("first", None), "test")
            .await
            .expect("add")
    );
    assert_eq!(keys.store.list().await.expect("list"), []);
}

#[tokio::test]
async fn expired_tokens_are_deleted_by_the_next_change() {
    let keys = Keys::new();
    keys.add("a", "token-a").await;
    execute(&keys.path(), "UPDATE api_key_tokens SET expires_at = 1");
    keys.add("b", "token-b").await;
    assert_eq!(
        number(&keys.path(), "SELECT count(*) FROM api_key_tokens"),
        1
    );
    assert_eq!(
        number(
            &keys.path(),
            "SELECT count(*) FROM api_key_tokens WHERE api_key_id = 'b'"
        ),
        1
    );
}

/// The row of the key stays, so that directories see the change.
#[tokio::test]
async fn a_revocation_deletes_the_tokens_and_uses_of_the_key() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    note_and_end(&keys, &["key"]).await;
    assert_eq!(number(&keys.path(), "SELECT count(*) FROM api_key_uses"), 1);
    keys.store
        .change(revoke("key"), "test")
        .await
        .expect("revoke");
    for table in ["api_key_tokens", "api_key_uses"] {
        assert_eq!(
            number(&keys.path(), &format!("SELECT count(*) FROM {table}")),
            0,
            "{table}"
        );
    }
    assert_eq!(number(&keys.path(), "SELECT version FROM api_keys"), 2);
}

/// Notes a request of these keys, and waits until the writer has ended.
async fn note_and_end(keys: &Keys, ids: &[&str]) {
    let (uses, writer_end) = keys.uses(HOUR);
    for id in ids {
        uses.note(&ApiKeyId::new(id), ApiKeyUse::Request);
    }
    drop(uses);
    writer_end.await.expect("the writer does not panic");
}

/// The clock can be set back.
#[tokio::test]
async fn a_write_moves_no_time_backwards_and_no_beginning() {
    let keys = Keys::new();
    let (early, late) = (
        keys.add("early", "token-a").await,
        keys.add("late", "token-b").await,
    );
    let in_an_hour = SystemTime::now() + HOUR;
    let seconds = in_an_hour
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    execute(
        &keys.path(),
        &format!(
            "INSERT INTO api_key_uses VALUES ('early', 0, 60), ('late', 0, {seconds});
         UPDATE api_key_state SET uses_since = 60"
        ),
    );
    note_and_end(&keys, &["early", "late"]).await;

    let uses = keys.store.list_uses().await.expect("list the uses");
    assert!(uses.last(&early.id, ApiKeyUse::Request).expect("a use") > in_an_hour - 2 * HOUR);
    assert_eq!(
        uses.last(&late.id, ApiKeyUse::Request),
        Some(UNIX_EPOCH + Duration::from_secs(seconds))
    );
    assert_eq!(uses.since, Some(UNIX_EPOCH + Duration::from_mins(1)));
}

#[tokio::test]
async fn uses_of_unknown_and_expired_keys_are_not_listed() {
    let keys = Keys::new();
    keys.add("expired", "token").await;
    note_and_end(&keys, &["unknown", "expired"]).await;
    execute(&keys.path(), "UPDATE api_key_tokens SET expires_at = 1");
    let uses = keys.store.list_uses().await.expect("list the uses");
    assert!(uses.last.is_empty(), "{uses:?}");
    assert!(uses.since.is_some());
}

/// A write is no change of a key: directories do not read the keys again.
#[tokio::test]
async fn a_write_does_not_change_the_version_of_the_keys() {
    let keys = Keys::new();
    keys.add("key", "token").await;
    let version = number(&keys.path(), "SELECT version FROM api_key_state");
    note_and_end(&keys, &["key"]).await;
    assert_eq!(
        number(&keys.path(), "SELECT version FROM api_key_state"),
        version
    );
}
