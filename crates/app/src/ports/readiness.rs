use async_trait::async_trait;
use thiserror::Error;

use super::Cause;

/// Probe of a dependency of the service.
///
/// The result may be slightly out of date, but every call ends: each wait of an adapter has a timeout.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Checks whether the dependency is ready.
    ///
    /// # Errors
    /// [`NotReady`] with the reason.
    async fn check(&self) -> Result<(), NotReady>;
}

/// The dependency is not ready.
#[derive(Debug, Error)]
#[error("not ready")]
pub struct NotReady(#[source] pub Cause);
