use std::{collections::HashMap, sync::Arc};

use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, Scopes,
    ports::{ApiKeyDirectory, ApiKeyUse, ApiKeyUses, StoreResult},
};
use async_trait::async_trait;
use secrecy::SecretString;

/// A fixed set of API keys in memory, by the digests of their tokens. A lookup is O(1), whether or not the key exists.
#[derive(Debug)]
pub struct MemoryApiKeyDirectory {
    keys: HashMap<ApiKeyDigest, Arc<ApiKey>>,
}

impl MemoryApiKeyDirectory {
    /// Creates one key per token, with the ids `memory-1`, `memory-2` and so on, and with all scopes. A repeated token
    /// belongs to the first of its keys.
    ///
    /// # Panics
    /// Never: each name is a valid id and a valid label.
    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let mut keys = HashMap::new();
        for (token, number) in tokens.into_iter().zip(1..) {
            let name = format!("memory-{number}");
            let id = ApiKeyId::parse(&name).expect("a valid id");
            let label = ApiKeyLabel::parse(&name).expect("a valid label");
            let key = ApiKey {
                id,
                label,
                scopes: Scopes::ALL,
            };
            keys.entry(ApiKeyDigest::of(token))
                .or_insert_with(|| Arc::new(key));
        }
        Self { keys }
    }
}

#[async_trait]
impl ApiKeyDirectory for MemoryApiKeyDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> StoreResult<Option<Arc<ApiKey>>> {
        Ok(self.keys.get(&digest).cloned())
    }
}

/// Keys of the configuration are not listed, so their uses are not recorded.
impl ApiKeyUses for MemoryApiKeyDirectory {
    fn note(&self, _: &ApiKeyId, _: ApiKeyUse) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_id_is_the_number_of_its_token() {
        let tokens = ["a", "b", "a"].map(SecretString::from);
        let directory = MemoryApiKeyDirectory::new(&tokens);

        for (token, id) in [("a", "memory-1"), ("b", "memory-2")] {
            let key = directory
                .find(ApiKeyDigest::of(&token.into()))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(key.id.as_str(), id);
        }
    }
}
