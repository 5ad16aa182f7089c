//! The use cases on API keys, which the operator of a store runs.
//!
//! They need no scope of an API key: the store itself decides who may change it. `by` names the user and the machine in
//! the audit log. The caller makes a new token, of which only the digest is stored.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyRefusal, AuditEntry, IssuedApiKey, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore, RecordedUses, StoreFailure, StoreResult},
};

/// Adds an API key.
pub struct IssueApiKey(Arc<dyn ApiKeyStore>);

/// Gives an API key a new token.
pub struct RotateApiKey(Arc<dyn ApiKeyStore>);

/// Removes an API key with all its tokens.
pub struct RevokeApiKey(Arc<dyn ApiKeyStore>);

/// Lists the API keys and their last uses.
pub struct ListApiKeys(Arc<dyn ApiKeyStore>);

/// Reads the audit log of the API keys.
pub struct ReadAuditLog(Arc<dyn ApiKeyStore>);

/// Result of [`IssueApiKey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueOutcome {
    /// The key was added.
    Added,
    /// This key has the token, the label and the scopes of the request. Nothing was changed.
    AlreadyRegistered(ApiKey),
}

/// Result of [`RotateApiKey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedApiKey {
    /// The key.
    pub key: ApiKey,
    /// When the old tokens end, by the clock of the store.
    pub old_tokens_end: SystemTime,
}

/// Result of [`ListApiKeys`].
#[derive(Debug)]
pub struct ListedApiKeys {
    /// Every key, in the order of the ids.
    pub keys: Vec<IssuedApiKey>,
    /// The last uses of these keys. If they cannot be read, the keys are listed without them.
    pub uses: StoreResult<RecordedUses>,
}

impl IssueApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self(store)
    }

    /// Adds a key with its first token. A token that belongs to a key with the same label and scopes is a success, so
    /// that a script can be repeated.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn execute(
        &self,
        key: &ApiKey,
        token: NewToken,
        by: &str,
    ) -> Result<IssueOutcome, ApiKeyChangeError> {
        let change = ApiKeyChange::Add(key.clone(), token);
        match self.0.change(change, by).await {
            Ok(_) => Ok(IssueOutcome::Added),
            Err(ApiKeyChangeError::Refused(ApiKeyRefusal::TokenTaken(owner)))
                if owner.label == key.label && owner.scopes == key.scopes =>
            {
                Ok(IssueOutcome::AlreadyRegistered(owner))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the other keys with the label of a key that was added: a rotation that was done by hand, or a mistake.
    /// Called after the token was shown, because it waits for the store. Without a list, the key is valid all the same.
    pub async fn same_label(&self, key: &ApiKey) -> Vec<ApiKeyId> {
        let keys = self.0.list().await.unwrap_or_default();
        keys.into_iter()
            .map(|listed| listed.key)
            .filter(|other| other.label == key.label && other.id != key.id)
            .map(|other| other.id)
            .collect()
    }
}

impl RotateApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self(store)
    }

    /// Adds a token to a key. The old tokens stay valid for `grace` at most.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn execute(
        &self,
        id: &ApiKeyId,
        token: NewToken,
        grace: Duration,
        by: &str,
    ) -> Result<RotatedApiKey, ApiKeyChangeError> {
        let change = ApiKeyChange::Rotate(id.clone(), token, grace);
        let changed = self.0.change(change, by).await?;
        Ok(RotatedApiKey {
            old_tokens_end: changed.old_tokens_end(),
            key: changed_key(changed.after)?,
        })
    }
}

impl RevokeApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self(store)
    }

    /// Removes a key and returns it.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn execute(&self, id: &ApiKeyId, by: &str) -> Result<ApiKey, ApiKeyChangeError> {
        let change = ApiKeyChange::Revoke(id.clone());
        let changed = self.0.change(change, by).await?;
        Ok(changed_key(changed.before)?)
    }
}

impl ListApiKeys {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self(store)
    }

    /// Returns every key.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    pub async fn execute(&self) -> StoreResult<ListedApiKeys> {
        let keys = self.0.list().await?;
        let uses = self.0.list_uses().await;
        Ok(ListedApiKeys { keys, uses })
    }
}

impl ReadAuditLog {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self(store)
    }

    /// Returns the entries, oldest first.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    pub async fn execute(&self) -> StoreResult<Vec<AuditEntry>> {
        self.0.audit_log().await
    }
}

fn changed_key(key: Option<IssuedApiKey>) -> StoreResult<ApiKey> {
    key.map(|key| key.key)
        .ok_or_else(|| StoreFailure::Corrupt("the store did not return the key".into()))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::{
        ApiKeyDigest, ApiKeyLabel, IssuedToken, Scope,
        ports::{ChangedApiKey, MockApiKeyStore},
        test_support::{
            api_key,
            key_changes::{add, new_token, revoke, rotate},
        },
    };

    const BY: &str = "user@host";

    fn issued(key: ApiKey, expires: &[Option<SystemTime>]) -> IssuedApiKey {
        let token = |&expires: &Option<SystemTime>| IssuedToken {
            digest: ApiKeyDigest([0; 32]),
            last_four: "abcd".to_owned(),
            created: UNIX_EPOCH,
            expires,
        };
        let tokens = expires.iter().map(token).collect();
        IssuedApiKey { key, tokens }
    }

    /// A store that expects this change by [`BY`].
    fn store(
        expected: ApiKeyChange,
        result: Result<ChangedApiKey, ApiKeyChangeError>,
    ) -> Arc<MockApiKeyStore> {
        let mut store = MockApiKeyStore::new();
        store
            .expect_change()
            .withf(move |change, by| *change == expected && by == BY)
            .return_once(|_, _| result);
        Arc::new(store)
    }

    fn changed(before: Option<IssuedApiKey>, after: Option<IssuedApiKey>) -> ChangedApiKey {
        let at = UNIX_EPOCH;
        ChangedApiKey { before, after, at }
    }

    async fn issue(
        result: Result<ChangedApiKey, ApiKeyChangeError>,
    ) -> Result<IssueOutcome, ApiKeyChangeError> {
        IssueApiKey::new(store(add("key", "token", None), result))
            .execute(&api_key("key"), new_token("token", None), BY)
            .await
    }

    async fn same_label(listed: StoreResult<Vec<IssuedApiKey>>) -> Vec<ApiKeyId> {
        let mut store = MockApiKeyStore::new();
        store.expect_list().return_once(|| listed);
        let issue = IssueApiKey::new(Arc::new(store));
        issue.same_label(&api_key("key")).await
    }

    #[tokio::test]
    async fn the_other_keys_with_a_label_are_found_as_far_as_keys_can_be_listed() {
        let namesake = ApiKey {
            label: api_key("key").label,
            ..api_key("namesake")
        };
        let expected = vec![namesake.id.clone()];
        let listed = [api_key("key"), api_key("other"), namesake];
        let listed = listed.map(|key| issued(key, &[None])).into();
        assert_eq!(same_label(Ok(listed)).await, expected);
        assert_eq!(same_label(Err(StoreFailure::Timeout)).await, []);
    }

    #[tokio::test]
    async fn a_token_of_a_key_with_the_same_label_and_scopes_is_registered_once() {
        let owner = ApiKey {
            id: api_key("owner").id,
            ..api_key("key")
        };
        let other_label = ApiKey {
            label: ApiKeyLabel::parse("other").unwrap(),
            ..owner.clone()
        };
        let fewer_scopes = ApiKey {
            scopes: [Scope::Read].into_iter().collect(),
            ..owner.clone()
        };
        for (owner, is_same) in [(owner, true), (other_label, false), (fewer_scopes, false)] {
            let refusal = ApiKeyRefusal::TokenTaken(owner.clone());
            let outcome = issue(Err(refusal.into())).await;
            assert_eq!(outcome.is_ok(), is_same, "{outcome:?}");
            if let Ok(outcome) = outcome {
                assert_eq!(outcome, IssueOutcome::AlreadyRegistered(owner));
            }
        }
        let added = changed(None, Some(issued(api_key("key"), &[None])));
        assert_eq!(issue(Ok(added)).await.unwrap(), IssueOutcome::Added);
    }

    #[tokio::test]
    async fn a_rotation_returns_the_key_and_the_end_of_its_old_tokens() {
        let grace = Duration::from_mins(1);
        let end = UNIX_EPOCH + grace;
        let after = issued(api_key("key"), &[Some(end), None]);
        let result = Ok(changed(None, Some(after)));
        let store = store(rotate("key", "token", grace), result);
        let rotated = RotateApiKey::new(store)
            .execute(&api_key("key").id, new_token("token", None), grace, BY)
            .await;
        let expected = RotatedApiKey {
            key: api_key("key"),
            old_tokens_end: end,
        };
        assert_eq!(rotated.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_revocation_returns_the_key_that_it_has_removed() {
        let id = api_key("key").id;
        let before = issued(api_key("key"), &[None]);
        let result = Ok(changed(Some(before), None));
        let revoked = RevokeApiKey::new(store(revoke("key"), result))
            .execute(&id, BY)
            .await;
        assert_eq!(revoked.unwrap(), api_key("key"));

        let unknown = ApiKeyRefusal::UnknownId(id.clone());
        let result = Err(unknown.into());
        let refused = RevokeApiKey::new(store(revoke("key"), result))
            .execute(&id, BY)
            .await;
        let message = refused.unwrap_err().to_string();
        assert_eq!(message, "no API key has the id key");
    }

    #[tokio::test]
    async fn keys_whose_uses_cannot_be_read_are_listed_without_them() {
        let mut store = MockApiKeyStore::new();
        store.expect_list().return_once(|| Ok(Vec::new()));
        store
            .expect_list_uses()
            .return_once(|| Err(StoreFailure::Timeout));
        let listed = ListApiKeys::new(Arc::new(store)).execute().await.unwrap();
        assert!(listed.uses.is_err());
    }
}
