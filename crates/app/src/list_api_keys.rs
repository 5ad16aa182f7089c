use std::sync::Arc;

use crate::ports::{ApiKeyStore, ApiKeyStoreError, TokenEntry};

/// Lists the API keys and the public details of their tokens.
pub struct ListApiKeys {
    store: Arc<dyn ApiKeyStore>,
}

impl ListApiKeys {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Returns every token of every key, ordered by key id and, for one key, by creation time.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    pub async fn execute(&self) -> Result<Vec<TokenEntry>, ApiKeyStoreError> {
        self.store.list().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{ports::MockApiKeyStore, test_support::api_key};

    #[tokio::test]
    async fn the_tokens_of_the_store_are_returned() {
        let entry = TokenEntry {
            key: api_key("key"),
            last_four: "abcd".to_owned(),
            created: SystemTime::UNIX_EPOCH,
            expires: None,
        };
        let mut store = MockApiKeyStore::new();
        store.expect_list().once().return_once({
            let entry = entry.clone();
            || Ok(vec![entry])
        });
        assert_eq!(ListApiKeys::new(Arc::new(store)).execute().await.unwrap(), [entry]);
    }
}
