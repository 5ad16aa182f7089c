use std::sync::Arc;

use crate::ports::{ApiKeyStore, ApiKeyStoreError, TokenEntry};

/// Lists the API keys with what may be shown of their tokens.
pub struct ListApiKeys {
    store: Arc<dyn ApiKeyStore>,
}

impl ListApiKeys {
    /// Lists keys of this store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Every token of every key, ordered by id, and those of one key by the time they were made.
    ///
    /// # Errors
    /// [`ApiKeyStoreError`] where the store failed.
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
    async fn keys_are_listed_as_the_store_has_them() {
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
