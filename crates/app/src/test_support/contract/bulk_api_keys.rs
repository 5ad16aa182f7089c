//! The contract of [`ApiKeySource`] and [`ApiKeyTarget`]. Each rule gets an empty store.
#![expect(clippy::missing_panics_doc, reason = "a rule panics if the adapter breaks it")]

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    ApiKey, ApiKeyId, ApiKeyLabel, ApiToken, Scope, Scopes,
    ports::{AddedKey, ApiKeyRecord, ApiKeySource, ApiKeyStore, ApiKeyStoreError, ApiKeyTarget, NewToken},
    test_support::api_key,
};

/// Writes one test for each rule of the contract. `setup` is an async function that returns [`BulkKeys`] over an empty
/// store, and a guard that is dropped after the test.
#[macro_export]
macro_rules! bulk_api_keys_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            bulk_api_keys, $setup();
            an_empty_store_exports_nothing,
            exported_tokens_can_be_imported_again,
            an_imported_token_is_exported_exactly,
            an_imported_token_that_exists_stays_as_it_is,
            an_import_with_a_conflict_changes_nothing,
            an_expired_token_is_not_imported,
        );
    };
}

/// Bulk access to a store of API keys, and the store.
pub struct BulkKeys {
    /// Reads all keys.
    pub source: Arc<dyn ApiKeySource>,
    /// Takes keys.
    pub target: Arc<dyn ApiKeyTarget>,
    /// The same store.
    pub store: Arc<dyn ApiKeyStore>,
}

const HOUR: Duration = Duration::from_hours(1);

impl BulkKeys {
    async fn export(&self) -> Vec<ApiKeyRecord> {
        self.source.export().await.expect("export")
    }

    async fn import(&self, records: &[ApiKeyRecord]) -> usize {
        self.target.import(records.to_vec()).await.expect("import").added
    }
}

fn token(text: &str, lifetime: Option<Duration>) -> NewToken {
    NewToken::new(&ApiToken::parse(text.into()).expect("a token"), lifetime)
}

/// Returns a token of a key, created an hour ago and valid for 90 minutes from now.
fn record(key: ApiKey, text: &str) -> ApiKeyRecord {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(now.as_secs());
    let expires = Some(second + HOUR + HOUR / 2 + Duration::from_millis(123));
    let NewToken { digest, last_four, .. } = token(text, None);
    ApiKeyRecord { key, digest, last_four, created: second - HOUR, expires }
}

/// This is no error.
pub async fn an_empty_store_exports_nothing(keys: BulkKeys) {
    keys.target.check_writable().await.expect("writable");
    assert_eq!(keys.export().await, []);
    assert_eq!(keys.import(&[]).await, 0);
}

/// The keys are in order of their ids, and the tokens of a key in order of their creation.
pub async fn exported_tokens_can_be_imported_again(keys: BulkKeys) {
    for (id, text) in [("b", "token-of-b"), ("a", "token-of-a")] {
        let added = keys.store.add(api_key(id), token(text, None)).await.expect("add");
        assert_eq!(added, AddedKey::New);
    }
    keys.store.rotate(&ApiKeyId::new("a"), token("new-token-of-a", None), HOUR).await.expect("rotate");
    let (exported, listed) = (keys.export().await, keys.store.list().await.expect("list"));
    assert_eq!(exported.iter().map(|record| record.key.id.as_str()).collect::<Vec<_>>(), ["a", "a", "b"]);
    assert_eq!(exported[0].digest, token("token-of-a", None).digest);
    assert_eq!(exported[1].digest, token("new-token-of-a", None).digest);

    for id in ["a", "b"] {
        keys.store.revoke(&ApiKeyId::new(id)).await.expect("revoke");
    }
    assert_eq!(keys.import(&exported).await, 3);
    assert_eq!(keys.export().await, exported);
    assert_eq!(keys.store.list().await.expect("list"), listed);
}

/// This holds for keys with every set of scopes, and with and without an expiry.
pub async fn an_imported_token_is_exported_exactly(keys: BulkKeys) {
    let with_scopes = |id: &str, scopes: &[Scope]| ApiKey { scopes: scopes.iter().copied().collect(), ..api_key(id) };
    let records = [
        record(with_scopes("a", &[]), "token-1"),
        record(with_scopes("b", &[Scope::Read]), "token-2"),
        ApiKeyRecord { expires: None, ..record(with_scopes("c", &[Scope::Write]), "token-3") },
        ApiKeyRecord { last_four: String::new(), ..record(api_key("d"), "token-4") },
    ];
    assert_eq!(keys.import(&records).await, 4);
    assert_eq!(keys.export().await, records);
}

/// The other tokens are added.
pub async fn an_imported_token_that_exists_stays_as_it_is(keys: BulkKeys) {
    let first = record(api_key("a"), "token-1");
    assert_eq!(keys.import(std::slice::from_ref(&first)).await, 1);
    let again = ApiKeyRecord { created: first.created - HOUR, ..first.clone() };
    let second = ApiKeyRecord { created: first.created + HOUR / 2, ..record(api_key("a"), "token-2") };
    assert_eq!(keys.import(&[again, second.clone()]).await, 1);
    assert_eq!(keys.export().await, [first, second]);
}

/// Neither the conflicting token nor any other is added.
pub async fn an_import_with_a_conflict_changes_nothing(keys: BulkKeys) {
    keys.import(&[record(api_key("a"), "token-1")]).await;
    let before = keys.export().await;
    let label = ApiKeyLabel::parse("another label").expect("a label");
    for conflict in [
        record(api_key("b"), "token-1"),
        record(ApiKey { label, ..api_key("a") }, "token-2"),
        record(ApiKey { scopes: Scopes::default(), ..api_key("a") }, "token-2"),
    ] {
        let refused = keys.target.import(vec![record(api_key("0"), "token-0"), conflict]).await;
        assert!(matches!(refused, Err(ApiKeyStoreError::Conflict(_))), "{refused:?}");
        assert_eq!(keys.export().await, before);
    }
}

/// A key without a valid token does not exist.
pub async fn an_expired_token_is_not_imported(keys: BulkKeys) {
    let expired = ApiKeyRecord {
        expires: Some(SystemTime::UNIX_EPOCH + HOUR),
        created: SystemTime::UNIX_EPOCH,
        ..record(api_key("a"), "token-1")
    };
    let valid = record(api_key("b"), "token-2");
    assert_eq!(keys.import(&[expired, valid.clone()]).await, 1);
    assert_eq!(keys.export().await, [valid]);
}
