//! The contract of [`ApiKeyStore`], and of a directory that follows the store.
#![expect(clippy::missing_panics_doc, reason = "a rule panics if the adapter breaks it")]

mod additions;
mod concurrency;
mod ends;
mod rotations;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    ApiKey, ApiKeyDigest, ApiKeyId, ApiToken,
    ports::{AddedKey, ApiKeyDirectory, ApiKeyStore, NewToken, TokenEntry},
    test_support::api_key,
};

pub use self::{additions::*, concurrency::*, ends::*, rotations::*};

/// Writes one test for each rule of the contract. `setup` is an async function that returns [`Keys`] over an empty
/// store, and a guard that is dropped after the test.
#[macro_export]
macro_rules! api_key_store_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            api_key_store, $setup();
            an_empty_store_lists_nothing,
            an_added_token_is_found_with_its_key,
            an_added_token_is_listed,
            a_token_that_exists_is_not_changed_by_an_addition,
            an_addition_with_a_taken_id_is_refused,
            an_unknown_key_is_neither_revoked_nor_rotated,
            a_revocation_ends_every_token_of_the_key,
            a_revoked_token_can_be_added_again,
            a_rotated_key_has_two_tokens_until_the_grace_ends,
            a_rotation_without_grace_ends_the_old_token,
            a_grace_never_extends_a_lifetime,
            a_new_token_expires_with_the_old_one_or_after_its_own_lifetime,
            a_rotation_to_a_token_that_exists_is_refused,
            a_token_expires_after_its_lifetime,
            a_key_without_valid_tokens_does_not_exist,
            a_token_that_moved_to_another_key_belongs_to_that_key_only,
            keys_are_listed_by_id_and_their_tokens_by_age,
            concurrent_changes_are_all_applied,
            concurrent_additions_of_one_token_add_one_key,
            no_token_outlives_a_concurrent_revocation,
        );
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
/// Long enough for any operation on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn token(text: &str, lifetime: Option<Duration>) -> NewToken {
    NewToken::new(&ApiToken::parse(text.into()).expect("a token"), lifetime)
}

fn digest(text: &str) -> ApiKeyDigest {
    token(text, None).digest
}

impl Keys {
    async fn add(&self, id: &str, text: &str, lifetime: Option<Duration>) -> ApiKey {
        let key = api_key(id);
        assert_eq!(self.store.add(key.clone(), token(text, lifetime)).await.expect("add"), AddedKey::New);
        key
    }

    async fn rotate(&self, id: &str, text: &str, grace: Duration) -> ApiKey {
        self.try_rotate(id, token(text, None), grace).await.expect("the key exists")
    }

    async fn try_rotate(&self, id: &str, token: NewToken, grace: Duration) -> Option<ApiKey> {
        let rotated = self.store.rotate(&ApiKeyId::new(id), token, grace).await.expect("rotate");
        rotated.map(|rotated| rotated.key)
    }

    async fn revoke(&self, id: &str) -> Option<ApiKey> {
        self.store.revoke(&ApiKeyId::new(id)).await.expect("revoke")
    }

    async fn list(&self) -> Vec<TokenEntry> {
        self.store.list().await.expect("list")
    }

    async fn listed_keys(&self) -> Vec<ApiKey> {
        self.list().await.into_iter().map(|entry| entry.key).collect()
    }

    async fn find(&self, text: &str) -> Option<Arc<ApiKey>> {
        self.directory.find(digest(text)).await.expect("find")
    }

    /// Waits until the directory finds this key: it follows the store with a delay.
    async fn wait_for(&self, text: &str, expected: Option<&ApiKey>) {
        let start = Instant::now();
        while self.find(text).await.as_deref() != expected {
            assert!(start.elapsed() < TIMEOUT, "{text}: {:?} instead of {expected:?}", self.find(text).await);
            tokio::task::yield_now().await;
        }
    }
}

/// Asserts that a time differs from the expected one by less than a minute.
fn assert_about(actual: Option<SystemTime>, expected: SystemTime) {
    let actual = actual.expect("a time");
    let difference = actual.duration_since(expected).unwrap_or_else(|error| error.duration());
    assert!(difference < Duration::from_mins(1), "{actual:?} instead of {expected:?}");
}
