use async_trait::async_trait;
use thiserror::Error;

use super::Cause;

/// Tells whether something the service depends on can work now.
///
/// The answer may be a little old, but every call ends: an adapter that waits for something has a deadline for it.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Whether it can work now.
    ///
    /// # Errors
    /// [`NotReady`] with the reason.
    async fn check(&self) -> Result<(), NotReady>;
}

/// Why something cannot work now.
#[derive(Debug, Error)]
#[error("not ready")]
pub struct NotReady(#[source] pub Cause);
