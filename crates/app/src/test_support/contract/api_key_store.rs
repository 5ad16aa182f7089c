//! What [`ApiKeyStore`] promises, to those who change keys and to those who look them up.
#![expect(clippy::missing_panics_doc, reason = "a rule that is broken panics: that is what it is for")]

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
/// store, and a guard that is dropped when the test ends.
#[macro_export]
macro_rules! api_key_store_contract {
    ($setup:path) => {
        $crate::contract_tests!(
            api_key_store, $setup();
            an_empty_store_lists_nothing,
            an_added_token_is_found_with_its_key,
            an_added_token_is_listed,
            a_token_that_exists_stays_as_it_is,
            an_id_that_is_taken_is_refused,
            an_unknown_key_is_neither_revoked_nor_rotated,
            a_revoked_key_is_gone_with_every_token,
            a_revoked_token_may_be_added_again,
            a_rotated_key_has_two_tokens_until_the_grace_ends,
            a_rotation_without_grace_ends_the_old_token,
            a_grace_lengthens_no_life,
            a_new_token_ends_with_the_one_before_it_or_as_it_is_told,
            a_token_that_exists_is_no_new_token_of_a_rotation,
            a_token_ends_with_its_lifetime,
            a_key_whose_tokens_have_ended_is_gone,
            a_token_that_came_to_another_key_is_that_key_s_alone,
            keys_are_listed_by_id_and_their_tokens_by_age,
            concurrent_changes_are_all_made,
            of_concurrent_additions_of_a_token_one_is_made,
            no_token_outlives_a_revocation_that_meets_a_rotation,
        );
    };
}

/// A store, and a directory over the same keys.
pub struct Keys {
    /// Changes keys.
    pub store: Arc<dyn ApiKeyStore>,
    /// Finds them.
    pub directory: Arc<dyn ApiKeyDirectory>,
}

const HOUR: Duration = Duration::from_hours(1);
/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

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
        let key = self.store.rotate(&ApiKeyId::new(id), token(text, None), grace).await.expect("rotate");
        key.expect("there is such a key")
    }

    async fn list(&self) -> Vec<TokenEntry> {
        self.store.list().await.expect("list")
    }

    async fn find(&self, text: &str) -> Option<Arc<ApiKey>> {
        self.directory.find(digest(text)).await.expect("find")
    }

    /// A directory follows the store; it does not wait for it.
    async fn find_comes_to(&self, text: &str, expected: Option<&ApiKey>) {
        let start = Instant::now();
        while self.find(text).await.as_deref() != expected {
            assert!(start.elapsed() < PATIENCE, "{text}: {:?} instead of {expected:?}", self.find(text).await);
            tokio::task::yield_now().await;
        }
    }
}

fn assert_about(actual: Option<SystemTime>, expected: SystemTime) {
    let actual = actual.expect("a time");
    let apart = actual.duration_since(expected).unwrap_or_else(|error| error.duration());
    assert!(apart < Duration::from_mins(1), "{actual:?} instead of {expected:?}");
}
