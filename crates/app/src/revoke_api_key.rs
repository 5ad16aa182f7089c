use std::sync::Arc;

use crate::{
    ApiKey, ApiKeyChange, ApiKeyId, IssuedApiKey,
    ports::{ApiKeyChangeError, ApiKeyStore},
};

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
        let changed = self.store.change(ApiKeyChange::Revoke(id.clone())).await?;
        Ok(changed.before.unwrap_or_else(|| IssuedApiKey::unreadable(id)).key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::{
        ports::{ChangedApiKey, MockApiKeyStore},
        test_support::api_key,
    };

    #[tokio::test]
    async fn the_revoked_key_is_returned() {
        let change = ApiKeyChange::Revoke(ApiKeyId::new("key"));
        let before = Some(IssuedApiKey { key: api_key("key"), tokens: Vec::new() });
        let changed = ChangedApiKey { before, after: None, at: UNIX_EPOCH };
        let mut store = MockApiKeyStore::new();
        store.expect_change().once().withf(move |given| *given == change).return_once(|_| Ok(changed));
        let revoked = RevokeApiKey::new(Arc::new(store)).execute(ApiKeyId::new("key")).await;
        assert_eq!(revoked.unwrap(), api_key("key"));
    }
}
