use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyRefusal, ApiToken, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore},
};

/// Gives an API key a new token. The old tokens stay valid for a grace period.
pub struct RotateApiKey {
    store: Arc<dyn ApiKeyStore>,
}

/// Result of [`RotateApiKey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedKey {
    /// The key.
    pub key: ApiKey,
    /// When the last of its old tokens expires, or expired, by the store's clock.
    pub old_tokens_end: SystemTime,
}

impl RotateApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Stores the new token and returns the key with the end of its old tokens, by the rules of
    /// [`ApiKeyChange::Rotate`].
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
        let token = NewToken::new(token, lifetime);
        let changed = self.store.change(ApiKeyChange::Rotate(id.clone(), token.clone(), grace)).await?;
        let after = changed.after.ok_or(ApiKeyRefusal::UnknownId(id))?;
        let old = after.tokens.iter().filter(|old| old.digest != token.digest);
        Ok(RotatedKey { old_tokens_end: old.filter_map(|old| old.expires).max().unwrap_or(changed.at), key: after.key })
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::{
        ApiKeyDigest, IssuedApiKey, IssuedToken,
        ports::{ChangedApiKey, MockApiKeyStore},
        test_support::api_key,
    };

    const DAY: Duration = Duration::from_hours(24);

    /// Rotates a key. The store returns old tokens with these ends.
    async fn rotate(ends: &[SystemTime]) -> SystemTime {
        let token = ApiToken::parse("token".into()).unwrap();
        let change = ApiKeyChange::Rotate(ApiKeyId::new("key"), NewToken::new(&token, None), DAY);
        let issued = |digest, expires| IssuedToken { digest, last_four: String::new(), created: UNIX_EPOCH, expires };
        let old = ends.iter().map(|end| issued(ApiKeyDigest::from_bytes([1; 32]), Some(*end)));
        let tokens = old.chain([issued(token.digest(), None)]).collect();
        let after = Some(IssuedApiKey { key: api_key("key"), tokens });
        let mut store = MockApiKeyStore::new();
        store
            .expect_change()
            .once()
            .withf(move |given| *given == change)
            .return_once(|_| Ok(ChangedApiKey { before: None, after, at: UNIX_EPOCH }));
        let rotated =
            RotateApiKey::new(Arc::new(store)).execute(ApiKeyId::new("key"), &token, DAY, None).await.unwrap();
        assert_eq!(rotated.key, api_key("key"));
        rotated.old_tokens_end
    }

    #[tokio::test]
    async fn the_end_of_the_old_tokens_is_returned() {
        assert_eq!(rotate(&[UNIX_EPOCH + DAY, UNIX_EPOCH + DAY / 2]).await, UNIX_EPOCH + DAY);
        assert_eq!(rotate(&[]).await, UNIX_EPOCH, "they expired with the change");
    }
}
