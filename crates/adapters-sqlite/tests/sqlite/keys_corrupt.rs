//! Rows of API keys that are not valid.

use animal_store_adapters_sqlite::SqliteApiKeyDirectory;
use animal_store_app::{
    Scopes,
    ports::{ApiKeySource, ApiKeyStore, ApiKeyStoreError, NewToken, StoreFailure},
    test_support::api_key,
};
use prometheus_client::registry::Registry;

use crate::{
    keys_support::{Keys, find, new_token},
    sql::execute,
    store::metric,
};

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
        let Err(ApiKeyStoreError::Corrupt(cause)) = keys.store.list().await else { panic!("{change}") };
        assert!(cause.to_string().contains("API key \"b"), "{cause}");
        assert!(matches!(keys.store.export().await, Err(ApiKeyStoreError::Corrupt(_))), "{change}");
    }
}

#[tokio::test]
async fn a_directory_counts_its_tokens_and_the_lookups_that_fail() {
    let keys = keys_with(CHANGES[0]).await;
    let mut metrics = Registry::default();
    let directory = SqliteApiKeyDirectory::start(&keys.file, &mut metrics).expect("a directory");
    find(&directory, "bad-token").await.expect_err("an invalid key");
    let failures = "keys_lookup_failures_total{reason=\"corrupt\"}";
    for (sample, expected) in [("keys_tokens", 2.0), ("keys_reloads_total", 1.0), (failures, 1.0)] {
        assert!((metric(&metrics, sample) - expected).abs() < f64::EPSILON, "{sample}");
    }
}

#[tokio::test]
async fn an_invalid_key_can_be_revoked() {
    let keys = keys_with(CHANGES[0]).await;
    let revoked = keys.store.revoke(&api_key("bad").id).await.expect("revoke").expect("the key");
    assert_eq!((revoked.label.as_str(), revoked.scopes), ("unreadable", Scopes::default()));
    assert_eq!(keys.store.list().await.expect("list").len(), 1);
}

#[tokio::test]
async fn malformed_values_of_a_token_are_reported() {
    for change in [
        "UPDATE api_key_tokens SET last_four = 'abcde' WHERE api_key_id = 'bad'",
        "UPDATE api_key_tokens SET last_four = char(27) WHERE api_key_id = 'bad'",
    ] {
        let keys = keys_with(change).await;
        let Err(ApiKeyStoreError::Corrupt(cause)) = keys.store.list().await else { panic!("{change}") };
        assert!(cause.to_string().contains("API key \"bad\": the last four"), "{cause}");
    }
    let keys = keys_with("UPDATE api_key_tokens SET digest = x'00' WHERE api_key_id = 'bad'").await;
    let Err(ApiKeyStoreError::Corrupt(cause)) = keys.store.export().await else { panic!("corrupt") };
    assert!(cause.to_string().contains("digest"), "{cause}");
    assert!(find(&keys.directory(), "good-token").await.expect("found").is_some());
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
    let listed = keys.store.list().await.expect("list");
    let expires = listed[0].expires.expect("an expiry").duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    assert_eq!(expires.as_secs(), 253_402_300_799);
    assert_eq!(listed[0].created, std::time::UNIX_EPOCH);
}

/// A directory would not see the change.
#[tokio::test]
async fn without_the_version_no_key_is_changed() {
    let keys = keys_with("DELETE FROM api_key_state").await;
    let key = api_key("bad");
    assert!(matches!(keys.store.revoke(&key.id).await, Err(ApiKeyStoreError::Corrupt(_))));
    let token: NewToken = new_token("new", None);
    assert!(matches!(keys.store.add(api_key("new"), token).await, Err(ApiKeyStoreError::Corrupt(_))));
    assert_eq!(keys.store.list().await.expect("list").len(), 2);
}
