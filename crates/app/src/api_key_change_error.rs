use thiserror::Error;

use crate::{ApiKeyId, ports::ApiKeyStoreError};

/// An API key was not changed: its token was not rotated, or it was not revoked.
#[derive(Debug, Error)]
pub enum ApiKeyChangeError {
    /// No API key has this id.
    #[error("no API key has the id {0}")]
    NotFound(ApiKeyId),
    /// The store failed. After [`ApiKeyStoreError::OutcomeUnknown`] the key may have been changed.
    #[error(transparent)]
    Store(#[from] ApiKeyStoreError),
}
