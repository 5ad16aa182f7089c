use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{
    ApiKey, ApiKeyId, ApiToken,
    ports::{ApiKeyStore, ApiKeyStoreError, NewToken},
};

/// Gives an API key a new token. The old tokens stay valid for a grace period.
pub struct RotateApiKey {
    store: Arc<dyn ApiKeyStore>,
}

/// A request to rotate the token of an API key.
#[derive(Debug, Clone)]
pub struct RotateRequest {
    /// The key.
    pub id: ApiKeyId,
    /// The new token.
    pub token: ApiToken,
    /// How long the old tokens stay valid, at most.
    pub grace: Duration,
    /// How long the new token is valid. `None`: it expires when the newest old token would have.
    pub lifetime: Option<Duration>,
}

/// The token was not rotated.
#[derive(Debug, Error)]
pub enum RotateApiKeyError {
    /// No API key has this id.
    #[error("no API key has the id {0}")]
    NotFound(ApiKeyId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ApiKeyStoreError),
}

impl RotateApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Stores the new token and returns the key.
    ///
    /// # Errors
    /// See [`RotateApiKeyError`].
    pub async fn execute(&self, request: RotateRequest) -> Result<ApiKey, RotateApiKeyError> {
        let token = NewToken::new(&request.token, request.lifetime);
        let key = self.store.rotate(&request.id, token, request.grace).await?;
        key.ok_or(RotateApiKeyError::NotFound(request.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ports::MockApiKeyStore, test_support::api_key};

    const DAY: Duration = Duration::from_hours(24);

    async fn rotate(rotated: Option<ApiKey>) -> Result<ApiKey, RotateApiKeyError> {
        let token = ApiToken::parse("token".into()).unwrap();
        let stored = NewToken::new(&token, None);
        let mut store = MockApiKeyStore::new();
        store
            .expect_rotate()
            .once()
            .withf(move |id, token, grace| id.as_str() == "key" && *token == stored && *grace == DAY)
            .return_once(|_, _, _| Ok(rotated));
        let request = RotateRequest { id: ApiKeyId::new("key"), token, grace: DAY, lifetime: None };
        RotateApiKey::new(Arc::new(store)).execute(request).await
    }

    #[tokio::test]
    async fn the_new_token_is_stored() {
        assert_eq!(rotate(Some(api_key("key"))).await.unwrap(), api_key("key"));
    }

    #[tokio::test]
    async fn an_unknown_key_is_not_found() {
        assert!(matches!(rotate(None).await, Err(RotateApiKeyError::NotFound(id)) if id.as_str() == "key"));
    }
}
