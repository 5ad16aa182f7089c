//! The contract of [`ApiKeyStore`], and of a directory that follows the store. The unit tests of `ApiKeyChange` have
//! the rules of the changes.

mod audit;
mod concurrency;
mod lifetimes;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use secrecy::{ExposeSecret, SecretString};

use crate::{
    ApiKey, ApiKeyChange, ApiKeyRefusal, IssuedApiKey, IssuedToken, NewToken, Scope,
    ports::{ApiKeyChangeError, ApiKeyDirectory, ApiKeyStore, ChangedApiKey},
    test_support::{
        api_key,
        contract::whole_second,
        key_changes::{add, new_token, revoke, rotate},
        wait_until,
    },
};

pub use self::{audit::*, concurrency::*, lifetimes::*};

/// Writes one test for each rule of the contract, and of that of the [directory](super::api_key_directory). `setup` is
/// an async function that returns [`Keys`] over an empty store, and a guard that is dropped after the test.
#[macro_export]
macro_rules! api_key_store_contract {
    ($setup:expr) => {
        $crate::contract_tests!(
            api_key_store, $setup();
            an_added_key_is_found_and_listed,
            an_imported_key_is_listed_exactly,
            a_refused_change_changes_nothing,
            a_rotated_key_has_both_tokens_until_the_grace_ends,
            a_revocation_ends_every_token_of_the_key,
            a_token_expires_by_the_clock_of_the_store,
            a_token_that_moved_to_another_key_belongs_to_that_key_only,
            changes_are_recorded_but_not_imports_and_refusals,
            recorded_changes_of_another_store_are_listed_by_their_times,
            the_last_ten_thousand_changes_of_a_year_are_kept,
            concurrent_changes_are_all_applied,
            concurrent_additions_of_one_token_add_one_key,
        );
        $crate::api_key_directory_contract!(async |tokens| {
            let (keys, guard) = $setup().await;
            (keys.with_tokens(tokens).await, guard)
        });
    };
}

/// A store, and a directory over the same keys.
pub struct Keys {
    /// Changes the keys.
    pub store: Arc<dyn ApiKeyStore>,
    /// Finds the keys.
    pub directory: Arc<dyn ApiKeyDirectory>,
}

const HOUR: Duration = Duration::from_hours(1);

impl Keys {
    /// Adds a key for each token. Returns the directory, which finds them.
    pub async fn with_tokens(self, tokens: Vec<SecretString>) -> Arc<dyn ApiKeyDirectory> {
        for (token, number) in tokens.iter().zip(1..) {
            let text = token.expose_secret();
            let key = self.add(&format!("key-{number}"), text, None).await;
            self.wait_for(text, Some(&key)).await;
        }
        self.directory
    }

    async fn change(&self, change: ApiKeyChange) -> ChangedApiKey {
        self.store.change(change, "test").await.expect("changed")
    }

    async fn add(&self, id: &str, text: &str, lifetime: Option<Duration>) -> ApiKey {
        let added = self.change(add(id, text, lifetime)).await;
        added.after.expect("the key exists").key
    }

    async fn assert_refused(&self, change: ApiKeyChange, refusal: &ApiKeyRefusal) {
        match self.store.change(change, "test").await {
            Err(ApiKeyChangeError::Refused(found)) => assert_eq!(found, *refusal),
            changed => panic!("{changed:?}"),
        }
    }

    async fn list(&self) -> Vec<IssuedApiKey> {
        self.store.list().await.expect("list")
    }

    async fn listed_keys(&self) -> Vec<ApiKey> {
        self.list().await.into_iter().map(|key| key.key).collect()
    }

    async fn find(&self, text: &str) -> Option<Arc<ApiKey>> {
        let digest = new_token(text, None).digest;
        self.directory.find(digest).await.expect("find")
    }

    /// Waits until the directory finds this key: it follows the store with a delay.
    async fn wait_for(&self, text: &str, expected: Option<&ApiKey>) {
        wait_until(text, async || self.find(text).await.as_deref() == expected).await;
    }
}

/// Returns a token that was created this long ago, in whole milliseconds.
fn issued(text: &str, age: Duration, expires: Option<SystemTime>) -> IssuedToken {
    let NewToken {
        digest, last_four, ..
    } = new_token(text, None);
    IssuedToken {
        digest,
        last_four,
        created: whole_second(SystemTime::now() - age),
        expires,
    }
}

/// The result has the key and the time of the store. The directory finds it even if it was queried for the token
/// before.
pub async fn an_added_key_is_found_and_listed(keys: Keys) {
    keys.store.check_writable().await.expect("writable");
    assert_eq!(keys.list().await, []);
    assert_eq!(keys.find("token-a").await, None);
    let before = SystemTime::now();
    let changed = keys.change(add("a", "token-a", Some(HOUR))).await;
    assert!(
        before - HOUR < changed.at && changed.at < SystemTime::now() + HOUR,
        "{changed:?}"
    );

    let added = changed.after.expect("the key exists");
    assert_eq!(changed.before, None);
    assert_eq!(added.key, api_key("a"));
    keys.wait_for("token-a", Some(&added.key)).await;
    assert_eq!(keys.find("token-b").await, None);
    assert_eq!(keys.list().await, [added]);
}

/// This holds for keys with every set of scopes, and with and without an expiry. Keys are listed in the order of their
/// ids, and tokens in the order of their creation.
pub async fn an_imported_key_is_listed_exactly(keys: Keys) {
    let with_scopes = |id: &str, scopes: &[Scope]| ApiKey {
        scopes: scopes.iter().copied().collect(),
        ..api_key(id)
    };
    let end = Some(whole_second(SystemTime::now()) + HOUR + Duration::from_millis(123));
    let imported = [
        IssuedApiKey {
            key: with_scopes("a", &[]),
            tokens: vec![issued("token-a", HOUR, end)],
        },
        IssuedApiKey {
            key: with_scopes("b", &[Scope::Read]),
            tokens: vec![
                issued("token-z", 2 * HOUR, None),
                issued("token-b", HOUR, end),
            ],
        },
        IssuedApiKey {
            key: with_scopes("c", &[Scope::Write]),
            tokens: vec![IssuedToken {
                last_four: String::new(),
                ..issued("token-c", HOUR, None)
            }],
        },
    ];
    for key in imported.iter().rev() {
        let imported = keys.change(ApiKeyChange::Import(key.clone())).await;
        assert_eq!(imported.after.as_ref(), Some(key));
    }
    assert_eq!(keys.list().await, imported);

    for key in &imported {
        let again = keys.change(ApiKeyChange::Import(key.clone())).await;
        assert_eq!(
            [again.before, again.after],
            [(); 2].map(|()| Some(key.clone()))
        );
        keys.change(revoke(key.key.id.as_str())).await;
    }
    assert_eq!(keys.list().await, []);
}

/// The rules see the key with the id, and the key with the token.
pub async fn a_refused_change_changes_nothing(keys: Keys) {
    let [a, b] = [
        keys.add("a", "token-a", None).await,
        keys.add("b", "token-b", None).await,
    ];
    let list = keys.list().await;

    let id_taken = ApiKeyRefusal::IdTaken(a.id.clone());
    keys.assert_refused(add("a", "token-c", None), &id_taken)
        .await;
    let other_tokens = IssuedApiKey {
        key: a.clone(),
        tokens: vec![issued("token-c", HOUR, None)],
    };
    let refusal = ApiKeyRefusal::OtherTokens(a.id.clone());
    keys.assert_refused(ApiKeyChange::Import(other_tokens), &refusal)
        .await;
    let taken = IssuedApiKey {
        key: api_key("c"),
        tokens: vec![issued("token-c", HOUR, None), issued("token-a", HOUR, None)],
    };
    for change in [
        add("c", "token-a", None),
        rotate("b", "token-a", HOUR),
        ApiKeyChange::Import(taken),
    ] {
        keys.assert_refused(change, &ApiKeyRefusal::TokenTaken(a.clone()))
            .await;
    }
    keys.assert_refused(revoke("c"), &ApiKeyRefusal::UnknownId)
        .await;
    assert_eq!(keys.list().await, list);
    assert_eq!(keys.find("token-c").await, None);
    keys.wait_for("token-b", Some(&b)).await;
}
