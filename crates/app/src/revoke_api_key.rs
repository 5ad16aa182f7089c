use std::sync::Arc;

use thiserror::Error;

use crate::{
    ApiKey, ApiKeyId,
    ports::{ApiKeyStore, ApiKeyStoreError},
};

/// Revokes an API key: all its tokens become invalid.
pub struct RevokeApiKey {
    store: Arc<dyn ApiKeyStore>,
}

/// The API key was not revoked.
#[derive(Debug, Error)]
pub enum RevokeApiKeyError {
    /// No API key has this id.
    #[error("no API key has the id {0}")]
    NotFound(ApiKeyId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ApiKeyStoreError),
}

impl RevokeApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Revokes the key and returns it as it was.
    ///
    /// # Errors
    /// See [`RevokeApiKeyError`].
    pub async fn execute(&self, id: ApiKeyId) -> Result<ApiKey, RevokeApiKeyError> {
        self.store.revoke(&id).await?.ok_or(RevokeApiKeyError::NotFound(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ports::MockApiKeyStore, test_support::api_key};

    async fn revoke(revoked: Result<Option<ApiKey>, ApiKeyStoreError>) -> Result<ApiKey, RevokeApiKeyError> {
        let mut store = MockApiKeyStore::new();
        store.expect_revoke().once().withf(|id| id.as_str() == "key").return_once(|_| revoked);
        RevokeApiKey::new(Arc::new(store)).execute(ApiKeyId::new("key")).await
    }

    #[tokio::test]
    async fn the_revoked_key_is_returned() {
        assert_eq!(revoke(Ok(Some(api_key("key")))).await.unwrap(), api_key("key"));
    }

    #[tokio::test]
    async fn an_unknown_key_is_not_found() {
        assert!(matches!(revoke(Ok(None)).await, Err(RevokeApiKeyError::NotFound(id)) if id.as_str() == "key"));
    }

    #[tokio::test]
    async fn an_error_of_the_store_is_returned() {
        let error = revoke(Err(ApiKeyStoreError::OutcomeUnknown("cut".into()))).await.unwrap_err();
        assert!(matches!(error, RevokeApiKeyError::Store(ApiKeyStoreError::OutcomeUnknown(_))));
    }
}
