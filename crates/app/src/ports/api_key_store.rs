use std::time::SystemTime;

use async_trait::async_trait;
use thiserror::Error;

use super::{RecordedUses, StoreFailure};
use crate::{ApiKeyChange, ApiKeyRefusal, IssuedApiKey};

/// Administration of API keys. Each [`ApiKeyDirectory`](super::ApiKeyDirectory) over the same store follows its
/// changes.
///
/// - Only digests of tokens are stored.
/// - Expiry uses the store's clock: a lifetime begins when the store applies the change.
/// - An expired token no longer exists, and neither does a key without tokens.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait ApiKeyStore: Send + Sync {
    /// Applies a change to one key in one step, by the rules of [`ApiKeyChange::apply`].
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`]. A revocation that failed may have revoked some of the tokens.
    async fn change(&self, change: ApiKeyChange) -> Result<ChangedApiKey, ApiKeyChangeError>;

    /// Returns every key, in the order of the ids.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure>;

    /// Returns the last uses of the keys that exist, as [`ApiKeyUses`](super::ApiKeyUses) recorded them.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure>;

    /// Checks the permissions that an import needs. Writes nothing.
    ///
    /// # Errors
    /// [`StoreFailure::Unavailable`] names what is missing.
    async fn check_writable(&self) -> Result<(), StoreFailure>;
}

/// An API key before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedApiKey {
    /// The key before. `None`: it did not exist.
    pub before: Option<IssuedApiKey>,
    /// The key after. `None`: it does not exist.
    pub after: Option<IssuedApiKey>,
    /// When the store applied the change, by its clock.
    pub at: SystemTime,
}

impl ChangedApiKey {
    /// When the last token but the newest one expires, or expired.
    pub fn old_tokens_end(&self) -> SystemTime {
        let tokens = self.after.as_ref().map_or(&[][..], |after| &after.tokens);
        tokens.iter().rev().skip(1).filter_map(|old| old.expires).max().unwrap_or(self.at)
    }
}

/// An API key was not changed.
#[derive(Debug, Error)]
pub enum ApiKeyChangeError {
    /// The rules refuse the change.
    #[error(transparent)]
    Refused(#[from] ApiKeyRefusal),
    /// The store failed. After [`StoreFailure::OutcomeUnknown`] the key may have been changed.
    #[error(transparent)]
    Store(#[from] StoreFailure),
}
