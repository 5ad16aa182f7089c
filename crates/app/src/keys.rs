//! The use cases on API keys, which the operator of a store runs.
//!
//! They need no scope of an API key: the store itself decides who may change it. `by` names the user and the machine in
//! the audit log. The caller makes a new token, of which only the digest is stored.

#[cfg(test)]
mod tests;

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
