//! API keys: their lookup, their administration, and the record of their uses.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use async_trait::async_trait;
use thiserror::Error;

use super::{Cause, StoreFailure, StoreResult};
use crate::{
    ApiKey, ApiKeyChange, ApiKeyDigest, ApiKeyId, ApiKeyRefusal, AuditEntry, IssuedApiKey,
};

/// Lookup of API keys.
///
/// - A key is found by the digest of its token, never by the token itself.
/// - The time that a lookup takes reveals nothing about the keys that exist.
/// - `Ok(None)` means that the lookup succeeded and found no key. A failed lookup is an error.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait ApiKeyDirectory: Send + Sync {
    /// Returns the valid key of the token with this digest, or `Ok(None)`.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn find(&self, digest: ApiKeyDigest) -> StoreResult<Option<Arc<ApiKey>>>;

    /// Returns the key that `find` would return without waiting. `None`: `find` waits, or finds no key. A directory
    /// that has every key in memory waits for none of them.
    fn find_in_memory(&self, digest: &ApiKeyDigest) -> Option<Arc<ApiKey>> {
        let _ = digest;
        None
    }
}

/// Administration of API keys. Each [`ApiKeyDirectory`] over the same store follows its changes.
///
/// - Only digests of tokens are stored.
/// - Expiry uses the store's clock: a lifetime begins when the store applies the change.
/// - An expired token no longer exists, and neither does a key without tokens.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait ApiKeyStore: Send + Sync {
    /// Applies a change to one key in one step, by the rules of [`ApiKeyChange::apply`], and records it: see
    /// [`AuditEntry::of`]. `by`: the user and the machine. A revocation does not fail with its entry: if that cannot be
    /// written, it is logged instead. So is the entry of a revocation whose outcome is unknown.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    async fn change(
        &self,
        change: ApiKeyChange,
        by: &str,
    ) -> Result<ChangedApiKey, ApiKeyChangeError>;

    /// Returns every key, in the order of the ids.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn list(&self) -> StoreResult<Vec<IssuedApiKey>>;

    /// Returns the last uses of the keys that exist, as [`ApiKeyUses`] recorded them.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn list_uses(&self) -> StoreResult<RecordedUses>;

    /// Returns the recorded changes: the audit log, oldest first: at most [`AuditEntry::LIMIT`], of the last
    /// [year](AuditEntry::KEPT).
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn audit_log(&self) -> StoreResult<Vec<AuditEntry>>;

    /// Appends entries of the audit log of another store, with their times.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn append_audit(&self, entries: Vec<AuditEntry>) -> StoreResult<()>;

    /// Checks the permissions that an import needs. Writes nothing.
    ///
    /// # Errors
    /// [`StoreFailure::Unavailable`] names what is missing.
    async fn check_writable(&self) -> StoreResult<()>;

    /// Waits until the changes of this store survive a fail-over, as far as it is configured to demand that.
    ///
    /// # Errors
    /// The reason why a fail-over can lose them. They are applied all the same.
    async fn confirm_changes(&self) -> Result<(), Cause> {
        Ok(())
    }
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
        tokens
            .iter()
            .rev()
            .skip(1)
            .filter_map(|old| old.expires)
            .max()
            .unwrap_or(self.at)
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

/// Record of the uses of API keys.
///
/// - A note neither blocks nor fails: an adapter keeps it in memory and writes it later, in a batch. A process that is
///   killed loses the notes since its last write.
/// - [`ApiKeyStore::list_uses`] returns the written uses. Of several uses of a key,
///   noted by several instances, it returns the latest.
/// - Memory is bounded: if too many keys are used between two writes, some of their uses are not recorded.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
pub trait ApiKeyUses: Send + Sync {
    /// Notes that a key was used now.
    fn note(&self, id: &ApiKeyId, kind: ApiKeyUse);
}

/// What an API key was used for. The kinds are recorded separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiKeyUse {
    /// Any request.
    Request,
    /// `getPet`, which is deprecated.
    GetPet,
}

impl ApiKeyUse {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 2] = [Self::Request, Self::GetPet];
}

/// When keys were last used, to the minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedUses {
    /// When the record began: earlier uses are unknown. `None`: nothing was recorded yet.
    pub since: Option<SystemTime>,
    /// The last use of each kind of each key that was used.
    pub last: HashMap<(ApiKeyId, ApiKeyUse), SystemTime>,
}

impl RecordedUses {
    /// Returns the last use of a key. `None`: none since the record began.
    pub fn last(&self, id: &ApiKeyId, kind: ApiKeyUse) -> Option<SystemTime> {
        self.last.get(&(id.clone(), kind)).copied()
    }
}
