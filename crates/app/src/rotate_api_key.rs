use std::{sync::Arc, time::Duration};

use crate::{
    ApiKeyChangeError, ApiKeyId, ApiToken,
    ports::{ApiKeyStore, NewToken, RotatedKey},
};

/// Gives an API key a new token. The old tokens stay valid for a grace period.
pub struct RotateApiKey {
    store: Arc<dyn ApiKeyStore>,
}

impl RotateApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Stores the new token and returns the key with the end of its old tokens. The old tokens expire after `grace` at
    /// the latest. Without a lifetime, the new token expires when the newest old token would have.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn execute(
        &self,
        id: ApiKeyId,
        token: &ApiToken,
        grace: Duration,
        lifetime: Option<Duration>,
    ) -> Result<RotatedKey, ApiKeyChangeError> {
        let rotated = self.store.rotate(&id, NewToken::new(token, lifetime), grace).await?;
        rotated.ok_or(ApiKeyChangeError::NotFound(id))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{ports::MockApiKeyStore, test_support::api_key};

    const DAY: Duration = Duration::from_hours(24);

    async fn rotate(rotated: Option<RotatedKey>) -> Result<RotatedKey, ApiKeyChangeError> {
        let token = ApiToken::parse("token".into()).unwrap();
        let stored = NewToken::new(&token, None);
        let mut store = MockApiKeyStore::new();
        store
            .expect_rotate()
            .once()
            .withf(move |id, token, grace| id.as_str() == "key" && *token == stored && *grace == DAY)
            .return_once(|_, _, _| Ok(rotated));
        RotateApiKey::new(Arc::new(store)).execute(ApiKeyId::new("key"), &token, DAY, None).await
    }

    #[tokio::test]
    async fn the_new_token_is_stored() {
        let rotated = RotatedKey { key: api_key("key"), old_tokens_end: SystemTime::UNIX_EPOCH + DAY };
        assert_eq!(rotate(Some(rotated.clone())).await.unwrap(), rotated);
    }

    #[tokio::test]
    async fn an_unknown_key_is_not_found() {
        assert!(matches!(rotate(None).await, Err(ApiKeyChangeError::NotFound(id)) if id.as_str() == "key"));
    }
}
