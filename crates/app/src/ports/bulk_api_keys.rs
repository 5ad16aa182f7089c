use std::time::SystemTime;

use async_trait::async_trait;

use super::ApiKeyStoreError;
use crate::{ApiKey, ApiKeyDigest};

/// Reads and writes all API keys of a store, to move them to another one.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait BulkApiKeys: Send + Sync {
    /// Returns every valid token of every key, ordered by key id and, for one key, by creation time.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError>;

    /// Adds tokens with their keys. A token that exists with an equal key stays as it is. Returns the number of tokens
    /// that were added. Expired tokens are not added.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`]. [`ApiKeyStoreError::Conflict`] if a token belongs to another key, or a key with the
    /// same id has another label or other scopes.
    async fn import(&self, records: Vec<ApiKeyRecord>) -> Result<usize, ApiKeyStoreError>;
}

/// A token as it is stored, with its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// The key that the token belongs to.
    pub key: ApiKey,
    /// Digest of the token.
    pub digest: ApiKeyDigest,
    /// Last characters of the token, by which people recognise it.
    pub last_four: String,
    /// Creation time, to the second.
    pub created: SystemTime,
    /// Expiry time, to the millisecond. `None`: never.
    pub expires: Option<SystemTime>,
}
