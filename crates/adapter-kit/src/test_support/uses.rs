//! Uses of keys.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::{
    ports::{ApiKeyStore, ApiKeyUse, ApiKeyUses},
    test_support::api_key_id,
};
use prometheus_client::registry::Registry;

use super::SqlKeys;
use crate::KeyDatabase;

const HOUR: Duration = Duration::from_hours(1);

impl<D: KeyDatabase> SqlKeys<D> {
    /// Notes a request of these keys, and waits until it is written.
    async fn note(&self, ids: &[&str]) {
        let (uses, writer_end) = self.start_uses(&mut Registry::default());
        for id in ids {
            uses.note(&api_key_id(id), ApiKeyUse::Request);
        }
        drop(uses);
        writer_end.await.expect("no panic");
    }
}

/// The row of the key stays, so that directories see the change.
pub async fn a_revocation_ends_tokens_and_uses_and_only_changes_of_keys_have_versions<
    D: KeyDatabase,
>(
    keys: SqlKeys<D>,
) {
    keys.add(&["key"]).await;
    keys.note(&["key"]).await;
    let uses = async || keys.list_uses().await.expect("listed").last.len();
    assert_eq!(uses().await, 1);
    keys.revoke("key").await;
    assert_eq!(uses().await, 0);
    assert_eq!((keys.number)("SELECT count(*) FROM api_key_tokens"), 0);
    assert_eq!((keys.number)("SELECT version FROM api_keys"), 2);
    // Another key with the id has no use.
    keys.add(&["key"]).await;
    assert_eq!(uses().await, 0);
}

/// The clock can be set back.
pub async fn a_write_moves_no_time_backwards_and_no_beginning<D: KeyDatabase>(keys: SqlKeys<D>) {
    keys.add(&["early", "late"]).await;
    let in_an_hour = SystemTime::now() + HOUR;
    let since_1970 = in_an_hour.duration_since(UNIX_EPOCH).expect("after 1970");
    let seconds = since_1970.as_secs();
    (keys.execute)(&format!(
        "INSERT INTO api_key_uses VALUES ('early', 0, 60), ('late', 0, {seconds});
        UPDATE api_key_state SET uses_since = 60"
    ));
    keys.note(&["early", "late"]).await;
    let uses = keys.list_uses().await.expect("listed");
    let last = |id| {
        uses.last(&api_key_id(id), ApiKeyUse::Request)
            .expect("a use")
    };
    assert!(last("early") > in_an_hour - 2 * HOUR);
    assert_eq!(last("late"), UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(uses.since, Some(UNIX_EPOCH + Duration::from_mins(1)));
}

/// An instance may note them after a revocation.
pub async fn uses_of_unknown_and_expired_keys_are_not_listed<D: KeyDatabase>(keys: SqlKeys<D>) {
    keys.add(&["expired"]).await;
    keys.note(&["unknown", "expired"]).await;
    (keys.execute)("UPDATE api_key_tokens SET expires_at = 1");
    let uses = keys.list_uses().await.expect("listed");
    assert!(uses.last.is_empty(), "{uses:?}");
    assert!(uses.since.is_some());
}
