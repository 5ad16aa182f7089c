use std::time::SystemTime;

use async_trait::async_trait;

use super::ApiKeyStoreError;
use crate::{ApiKey, ApiKeyDigest, ApiKeyId};

/// Reads all API keys, to copy them to another store.
#[async_trait]
pub trait ApiKeySource: Send + Sync {
    /// Returns every valid token of every key, ordered by key id and, for one key, by creation time.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError>;
}

/// Takes the API keys of another store.
#[async_trait]
pub trait ApiKeyTarget: Send + Sync {
    /// Checks the permissions that [`import`](Self::import) needs. Writes nothing.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn check_writable(&self) -> Result<(), ApiKeyStoreError>;

    /// Adds the tokens that [`missing_tokens`](crate::missing_tokens) selects from `records`, in one step.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`]. [`ApiKeyStoreError::Conflict`] if the records contradict the keys of this store:
    /// nothing was changed.
    async fn import(&self, records: Vec<ApiKeyRecord>) -> Result<ImportedApiKeys, ApiKeyStoreError>;
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

/// Result of [`ApiKeyTarget::import`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedApiKeys {
    /// Number of tokens that were added.
    pub added: usize,
    /// Keys of this store that the source does not have, in the order of their ids.
    pub others: Vec<ApiKeyId>,
}
