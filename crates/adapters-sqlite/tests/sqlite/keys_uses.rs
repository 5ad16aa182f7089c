//! The record of uses: when it is written, and what it contains.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::{
    ApiKeyId,
    ports::{ApiKeyStore, ApiKeyUse, ApiKeyUses},
};

use crate::{
    keys_support::Keys,
    sql::{execute, number},
};

const HOUR: Duration = Duration::from_hours(1);

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
    let (early, late) = (keys.add("early", "token-a").await, keys.add("late", "token-b").await);
    let in_an_hour = SystemTime::now() + HOUR;
    let seconds = in_an_hour.duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
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
    assert_eq!(uses.last(&late.id, ApiKeyUse::Request), Some(UNIX_EPOCH + Duration::from_secs(seconds)));
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
    assert_eq!(number(&keys.path(), "SELECT version FROM api_key_state"), version);
}
