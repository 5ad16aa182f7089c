use async_trait::async_trait;

use super::Cause;

/// Probe of a dependency of the service. The result may be slightly out of date.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Checks whether the dependency is ready.
    ///
    /// # Errors
    /// The reason why it is not ready.
    async fn check(&self) -> Result<(), Cause>;
}
