use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use super::Cause;
use crate::{ApiKey, ApiKeyDigest};

/// Lookup of API keys.
///
/// - A key is found by the digest of its token, never by the token itself.
/// - The time that a lookup takes reveals nothing about the keys that exist.
/// - `Ok(None)` means that the lookup succeeded and found no key. A failed lookup is an error.
/// - Every call ends: each wait of an adapter has a timeout.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait ApiKeyDirectory: Send + Sync {
    /// Returns the valid key of the token with this digest, or `Ok(None)`.
    ///
    /// # Errors
    /// See [`ApiKeyDirectoryError`].
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, ApiKeyDirectoryError>;
}

/// The lookup failed.
#[derive(Debug, Error)]
pub enum ApiKeyDirectoryError {
    /// The directory cannot be reached or refuses the lookup.
    #[error("the API key directory is unavailable")]
    Unavailable(#[source] Cause),
    /// The bound on concurrent lookups is reached.
    #[error("the API key directory is overloaded")]
    Overloaded,
    /// The directory did not respond within its timeout.
    #[error("the API key directory did not respond in time")]
    Timeout,
    /// The stored entry is not a valid API key.
    #[error("the API key directory contains an invalid entry")]
    Corrupt(#[source] Cause),
}
