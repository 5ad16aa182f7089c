use std::{collections::HashMap, sync::Arc};

use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, Scopes,
    ports::{ApiKeyDirectory, ApiKeyDirectoryError},
};
use async_trait::async_trait;
use secrecy::SecretString;

/// API keys in memory, fixed when the directory is made. Only the digests of their tokens are kept.
///
/// A look-up is O(1): one hash of the digest, whether or not the key exists.
#[derive(Debug)]
pub struct MemoryApiKeyDirectory {
    keys: HashMap<ApiKeyDigest, Arc<ApiKey>>,
}

impl MemoryApiKeyDirectory {
    /// One key for each token, called `memory-1`, `memory-2` and so on in the order given, that may do everything. A
    /// token given twice is the key of its first place.
    ///
    /// # Panics
    /// Never: such a name is a label.
    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let mut keys = HashMap::new();
        for (token, number) in tokens.into_iter().zip(1..) {
            let name = format!("memory-{number}");
            let label = ApiKeyLabel::parse(&name).expect("a label");
            let key = ApiKey { id: ApiKeyId::new(&name), label, scopes: Scopes::ALL };
            keys.entry(ApiKeyDigest::of(token)).or_insert_with(|| Arc::new(key));
        }
        Self { keys }
    }
}

#[async_trait]
impl ApiKeyDirectory for MemoryApiKeyDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, ApiKeyDirectoryError> {
        Ok(self.keys.get(&digest).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_are_named_by_the_place_of_their_token() {
        let tokens = ["a", "b", "a"].map(SecretString::from);
        let directory = MemoryApiKeyDirectory::new(&tokens);

        for (token, id) in [("a", "memory-1"), ("b", "memory-2")] {
            let key = directory.find(ApiKeyDigest::of(&token.into())).await.unwrap().unwrap();
            assert_eq!(key.id.as_str(), id);
        }
    }
}
