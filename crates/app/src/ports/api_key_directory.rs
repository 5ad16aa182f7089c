use std::sync::Arc;

use async_trait::async_trait;

use super::StoreFailure;
use crate::{ApiKey, ApiKeyDigest};

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
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure>;
}
