use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use thiserror::Error;

use super::{Cause, RecordedUses};
use crate::{ApiKey, ApiKeyDigest, ApiKeyId, ApiToken};

/// Administration of API keys. Each [`ApiKeyDirectory`](super::ApiKeyDirectory) over the same store follows its
/// changes.
///
/// - A key has one token. From a rotation until the end of its grace period, it has more. Only digests are stored.
/// - `add` and `rotate` are atomic. A failed `revoke` may have revoked some of the tokens; it never restores a token.
/// - Expiry uses the store's clock: a lifetime begins when the store applies the change.
/// - An expired token no longer exists, and neither does a key without tokens.
/// - Every call ends: each wait of an adapter has a timeout.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait ApiKeyStore: Send + Sync {
    /// Adds a key with its first token. The id must be new. A token that already belongs to a key stays as it is.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn add(&self, key: ApiKey, token: NewToken) -> Result<AddedKey, ApiKeyStoreError>;

    /// Returns every token of every key, ordered by key id and, for one key, by creation time.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn list(&self) -> Result<Vec<TokenEntry>, ApiKeyStoreError>;

    /// Returns the last uses of the keys that exist, as [`ApiKeyUses`](super::ApiKeyUses) recorded them.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn list_uses(&self) -> Result<RecordedUses, ApiKeyStoreError>;

    /// Gives a key a new token, which no key may have yet. The old tokens expire after `grace` at the latest. If the
    /// new token has no lifetime, it expires when the newest old token would have. Returns the key, or `Ok(None)` if no
    /// key has this id.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn rotate(
        &self,
        id: &ApiKeyId,
        token: NewToken,
        grace: Duration,
    ) -> Result<Option<RotatedKey>, ApiKeyStoreError>;

    /// Revokes every token of a key. Returns the key as it was, or `Ok(None)` if no key has this id.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn revoke(&self, id: &ApiKeyId) -> Result<Option<ApiKey>, ApiKeyStoreError>;
}

/// A token to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Digest by which directories find the token.
    pub digest: ApiKeyDigest,
    /// Last characters of the token, by which people recognise it.
    pub last_four: String,
    /// How long the token is valid, to the millisecond. `None`: it does not expire.
    pub lifetime: Option<Duration>,
}

impl NewToken {
    /// Creates the stored form of a token.
    pub fn new(token: &ApiToken, lifetime: Option<Duration>) -> Self {
        Self { digest: token.digest(), last_four: token.last_four(), lifetime }
    }
}

/// Result of [`ApiKeyStore::add`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedKey {
    /// The key was added.
    New,
    /// The token already belongs to this key. Nothing was changed.
    Existing(ApiKey),
}

/// Result of [`ApiKeyStore::rotate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedKey {
    /// The key.
    pub key: ApiKey,
    /// When the last of its old tokens expires, or expired, by the store's clock, to the second.
    pub old_tokens_end: SystemTime,
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEntry {
    /// The key that the token belongs to.
    pub key: ApiKey,
    /// Last characters of the token, by which people recognise it.
    pub last_four: String,
    /// Creation time, to the second.
    pub created: SystemTime,
    /// Expiry time, to the second. `None`: never.
    pub expires: Option<SystemTime>,
}

/// The store failed.
#[derive(Debug, Error)]
pub enum ApiKeyStoreError {
    /// The store cannot be reached or refuses the call. Nothing was changed.
    #[error("the API key store is unavailable")]
    Unavailable(#[source] Cause),
    /// Another key has this id or this token. Nothing was changed.
    #[error("the API key store refuses the change")]
    Conflict(#[source] Cause),
    /// The change may have been made.
    #[error("the outcome is unknown: the API keys may have been changed")]
    OutcomeUnknown(#[source] Cause),
    /// A stored entry is not a valid API key. Nothing was changed.
    #[error("the API key store contains an invalid entry")]
    Corrupt(#[source] Cause),
}
