use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use super::Cause;
use crate::{ApiKey, ApiKeyDigest};

/// Where API keys are looked up.
///
/// - A key is found by the digest of its token, never by the token itself.
/// - The work for a known and for an unknown digest does not differ by which keys exist.
/// - "Unknown" is an answer, given only by a directory that could look: one that cannot look fails.
/// - Every call ends: an adapter that waits for something has a deadline for it.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait ApiKeyDirectory: Send + Sync {
    /// The key that is valid now and whose token has this digest; `Ok(None)` where there is none.
    ///
    /// # Errors
    /// See [`DirectoryError`].
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, DirectoryError>;
}

/// Why a directory could not look.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// It cannot be reached, or refuses to work.
    #[error("the API key directory is unavailable")]
    Unavailable(#[source] Cause),
    /// It has no room for another look-up now.
    #[error("the API key directory is overloaded")]
    Overloaded,
    /// It did not answer in time.
    #[error("the API key directory did not answer in time")]
    Deadline,
    /// It holds something that is no API key.
    #[error("the API key directory holds something that is no API key")]
    Corrupt(#[source] Cause),
}
