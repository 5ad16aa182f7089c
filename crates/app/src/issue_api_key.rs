use std::{sync::Arc, time::Duration};

use crate::{
    ApiKey, ApiKeyChange, ApiKeyRefusal, ApiToken, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore},
};

/// Adds an API key to the store, with a new token or with one from another system.
pub struct IssueApiKey {
    store: Arc<dyn ApiKeyStore>,
}

impl IssueApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Adds the key, whose id is new. If the token belongs to a key with the same label and scopes, nothing is changed,
    /// and that key is returned. Without a lifetime, the token does not expire.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn execute(
        &self,
        key: ApiKey,
        token: &ApiToken,
        lifetime: Option<Duration>,
    ) -> Result<Option<ApiKey>, ApiKeyChangeError> {
        match self.store.change(ApiKeyChange::Add(key.clone(), NewToken::new(token, lifetime))).await {
            Err(ApiKeyChangeError::Refused(ApiKeyRefusal::TokenTaken(owner)))
                if owner.label == key.label && owner.scopes == key.scopes =>
            {
                Ok(Some(owner))
            }
            changed => changed.map(|_| None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::{
        ApiKeyLabel, Scope, Scopes,
        ports::{ChangedApiKey, MockApiKeyStore},
        test_support::api_key,
    };

    async fn issue(owner: Option<ApiKey>) -> Result<Option<ApiKey>, ApiKeyChangeError> {
        let (token, lifetime) = (ApiToken::parse("token".into()).unwrap(), Some(Duration::from_hours(7 * 24)));
        let change = ApiKeyChange::Add(api_key("new"), NewToken::new(&token, lifetime));
        let mut store = MockApiKeyStore::new();
        store.expect_change().once().withf(move |given| *given == change).return_once(|_| match owner {
            None => Ok(ChangedApiKey { before: None, after: None, at: UNIX_EPOCH }),
            Some(owner) => Err(ApiKeyRefusal::TokenTaken(owner).into()),
        });
        IssueApiKey::new(Arc::new(store)).execute(api_key("new"), &token, lifetime).await
    }

    #[tokio::test]
    async fn a_key_is_new_or_stays_as_it_is_or_its_token_belongs_to_another_one() {
        assert_eq!(issue(None).await.unwrap(), None);
        let equal = ApiKey { label: api_key("new").label, ..api_key("old") };
        assert_eq!(issue(Some(equal.clone())).await.unwrap(), Some(equal));

        let other_label = ApiKey { label: ApiKeyLabel::parse("other").unwrap(), ..api_key("new") };
        let other_scopes = ApiKey { scopes: Scopes::from_iter([Scope::Read]), ..api_key("new") };
        for owner in [other_label, other_scopes] {
            let error = issue(Some(owner.clone())).await.unwrap_err();
            assert!(matches!(error, ApiKeyChangeError::Refused(ApiKeyRefusal::TokenTaken(key)) if key == owner));
        }
    }
}
