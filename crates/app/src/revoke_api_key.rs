use std::sync::Arc;

use thiserror::Error;

use crate::{
    ApiKey, ApiKeyId,
    ports::{ApiKeyStore, ApiKeyStoreError},
};

/// Ends an API key, with every token it has.
pub struct RevokeApiKey {
    store: Arc<dyn ApiKeyStore>,
}

/// Why no key was ended.
#[derive(Debug, Error)]
pub enum RevokeApiKeyError {
    /// There is no such key.
    #[error("no API key has the id {0}")]
    NotFound(ApiKeyId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ApiKeyStoreError),
}

impl RevokeApiKey {
    /// Ends keys of this store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Ends the key and returns what it was.
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

    async fn revoke(answer: Result<Option<ApiKey>, ApiKeyStoreError>) -> Result<ApiKey, RevokeApiKeyError> {
        let mut store = MockApiKeyStore::new();
        store.expect_revoke().once().withf(|id| id.as_str() == "key").return_once(|_| answer);
        RevokeApiKey::new(Arc::new(store)).execute(ApiKeyId::new("key")).await
    }

    #[tokio::test]
    async fn the_key_that_was_ended_is_returned() {
        assert_eq!(revoke(Ok(Some(api_key("key")))).await.unwrap(), api_key("key"));
    }

    #[tokio::test]
    async fn a_key_that_does_not_exist_cannot_be_ended() {
        assert!(matches!(revoke(Ok(None)).await, Err(RevokeApiKeyError::NotFound(id)) if id.as_str() == "key"));
    }

    #[tokio::test]
    async fn a_store_that_fails_is_not_a_missing_key() {
        let error = revoke(Err(ApiKeyStoreError::OutcomeUnknown("cut".into()))).await.unwrap_err();
        assert!(matches!(error, RevokeApiKeyError::Store(ApiKeyStoreError::OutcomeUnknown(_))));
    }
}
