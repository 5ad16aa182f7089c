use std::sync::Arc;

use crate::{ApiKey, ApiKeyChangeError, ApiKeyId, ports::ApiKeyStore};

/// Revokes an API key: all its tokens become invalid.
pub struct RevokeApiKey {
    store: Arc<dyn ApiKeyStore>,
}

impl RevokeApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Revokes the key and returns it as it was.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn execute(&self, id: ApiKeyId) -> Result<ApiKey, ApiKeyChangeError> {
        self.store.revoke(&id).await?.ok_or(ApiKeyChangeError::NotFound(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ports::{ApiKeyStoreError, MockApiKeyStore},
        test_support::api_key,
    };

    async fn revoke(revoked: Result<Option<ApiKey>, ApiKeyStoreError>) -> Result<ApiKey, ApiKeyChangeError> {
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
        assert!(matches!(revoke(Ok(None)).await, Err(ApiKeyChangeError::NotFound(id)) if id.as_str() == "key"));
    }

    #[tokio::test]
    async fn an_error_of_the_store_is_returned() {
        let error = revoke(Err(ApiKeyStoreError::OutcomeUnknown("cut".into()))).await.unwrap_err();
        assert!(matches!(error, ApiKeyChangeError::Store(ApiKeyStoreError::OutcomeUnknown(_))));
    }
}
