use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{
    ApiKey, ApiKeyId, ApiToken,
    ports::{ApiKeyStore, ApiKeyStoreError, Cause, NewToken, RandomSource},
};

/// Gives an API key a new token while the old one goes on for a while.
pub struct RotateApiKey {
    store: Arc<dyn ApiKeyStore>,
    random: Arc<dyn RandomSource>,
}

/// The rotation that is wanted.
#[derive(Debug, Clone)]
pub struct RotateRequest {
    /// Whose token.
    pub id: ApiKeyId,
    /// How long the tokens that there are stay valid, at most.
    pub grace: Duration,
    /// How long the new token is valid; `None` is as long as the one before it.
    pub lifetime: Option<Duration>,
}

/// Why there is no new token.
#[derive(Debug, Error)]
pub enum RotateApiKeyError {
    /// There is no such key.
    #[error("no API key has the id {0}")]
    NotFound(ApiKeyId),
    /// There is nothing to make a token of.
    #[error("no random bits can be had")]
    NoRandomBits(#[source] Cause),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ApiKeyStoreError),
}

impl RotateApiKey {
    /// Keeps keys in this store, and makes tokens of these bits.
    pub fn new(store: Arc<dyn ApiKeyStore>, random: Arc<dyn RandomSource>) -> Self {
        Self { store, random }
    }

    /// The key with its new token, which can never be shown again.
    ///
    /// # Errors
    /// See [`RotateApiKeyError`].
    pub async fn execute(&self, request: RotateRequest) -> Result<(ApiKey, ApiToken), RotateApiKeyError> {
        let token = ApiToken::from_random(&self.random.bits().map_err(RotateApiKeyError::NoRandomBits)?);
        let stored = NewToken::new(&token, request.lifetime);
        let key = self.store.rotate(&request.id, stored, request.grace).await?;
        Ok((key.ok_or(RotateApiKeyError::NotFound(request.id))?, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ports::{MockApiKeyStore, MockRandomSource},
        test_support::api_key,
    };

    const DAY: Duration = Duration::from_hours(24);

    async fn rotate(answer: Option<ApiKey>) -> Result<(ApiKey, ApiToken), RotateApiKeyError> {
        let stored = NewToken::new(&ApiToken::from_random(&[1; 32]), None);
        let mut store = MockApiKeyStore::new();
        store
            .expect_rotate()
            .once()
            .withf(move |id, token, grace| id.as_str() == "key" && *token == stored && *grace == DAY)
            .return_once(|_, _, _| Ok(answer));
        let mut random = MockRandomSource::new();
        random.expect_bits().once().returning(|| Ok([1; 32]));
        let request = RotateRequest { id: ApiKeyId::new("key"), grace: DAY, lifetime: None };
        RotateApiKey::new(Arc::new(store), Arc::new(random)).execute(request).await
    }

    #[tokio::test]
    async fn the_key_gets_a_new_token() {
        let (key, token) = rotate(Some(api_key("key"))).await.unwrap();
        assert_eq!(key, api_key("key"));
        assert_eq!(token.digest(), ApiToken::from_random(&[1; 32]).digest());
    }

    #[tokio::test]
    async fn a_key_that_does_not_exist_has_no_token() {
        assert!(matches!(rotate(None).await, Err(RotateApiKeyError::NotFound(id)) if id.as_str() == "key"));
    }
}
