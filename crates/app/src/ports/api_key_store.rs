use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use thiserror::Error;

use super::Cause;
use crate::{ApiKey, ApiKeyDigest, ApiKeyId, ApiToken};

/// Where API keys are issued, listed and revoked; every [`ApiKeyDirectory`](super::ApiKeyDirectory) over the same
/// store follows.
///
/// - A key has one token or, from a rotation until its grace ends, more. Tokens are kept as digests alone.
/// - An addition or a rotation is made as a whole or not at all. A revocation that failed may have ended some tokens, and
///   never gives one back.
/// - Time is the store's own: a lifetime begins when the store takes the change.
/// - A token that has reached its end is not there any more, and neither is a key without tokens.
/// - Every call ends: an adapter that waits for something has a deadline for it.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait ApiKeyStore: Send + Sync {
    /// Adds a key, whose id must be new, with its first token. A token that some key has already stays as it is.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn add(&self, key: ApiKey, token: NewToken) -> Result<Added, ApiKeyStoreError>;

    /// Every token of every key, ordered by id, and those of one key by the time they were made.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn list(&self) -> Result<Vec<TokenEntry>, ApiKeyStoreError>;

    /// Gives a key a new token, which no key may have yet, and ends every other one after `grace` at the latest. Without a lifetime, the new
    /// token ends when the newest one before it would have. `Ok(None)` where there is no such key.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn rotate(&self, id: &ApiKeyId, token: NewToken, grace: Duration)
    -> Result<Option<ApiKey>, ApiKeyStoreError>;

    /// Ends every token of a key now, and returns what the key was; `Ok(None)` where there is no such key.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    async fn revoke(&self, id: &ApiKeyId) -> Result<Option<ApiKey>, ApiKeyStoreError>;
}

/// A token to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// By which it is found.
    pub digest: ApiKeyDigest,
    /// By which people recognise it.
    pub last_four: String,
    /// How long it is valid, to the millisecond; `None` is for ever.
    pub lifetime: Option<Duration>,
}

impl NewToken {
    /// This token, for so long.
    pub fn new(token: &ApiToken, lifetime: Option<Duration>) -> Self {
        Self { digest: token.digest(), last_four: token.last_four(), lifetime }
    }
}

/// What became of a token that was to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It belongs to the new key.
    New,
    /// It belonged to this key already, and still does.
    Exists(ApiKey),
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEntry {
    /// Whose it is.
    pub key: ApiKey,
    /// By which people recognise it.
    pub last_four: String,
    /// When it was stored, to the second.
    pub created: SystemTime,
    /// When it ends, to the second; `None` is never.
    pub expires: Option<SystemTime>,
}

/// Why a store did not do what it was asked for.
#[derive(Debug, Error)]
pub enum ApiKeyStoreError {
    /// It cannot be reached, or refuses to work. Nothing was changed.
    #[error("the API key store is unavailable")]
    Unavailable(#[source] Cause),
    /// Another key has this id or this token. Nothing was changed.
    #[error("the API key store refuses that")]
    Conflict(#[source] Cause),
    /// The change may have been made.
    #[error("it is unknown whether the API keys were changed")]
    OutcomeUnknown(#[source] Cause),
    /// It holds something that is no API key. Nothing was changed.
    #[error("the API key store holds something that is no API key")]
    Corrupt(#[source] Cause),
}
