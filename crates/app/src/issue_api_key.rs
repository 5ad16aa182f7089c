use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{
    ApiKey, ApiToken,
    ports::{AddedKey, ApiKeyStore, ApiKeyStoreError, NewToken},
};

/// Adds an API key to the store, with a new token or with one from another system.
pub struct IssueApiKey {
    store: Arc<dyn ApiKeyStore>,
}

/// The API key was not issued.
#[derive(Debug, Error)]
pub enum IssueApiKeyError {
    /// The token belongs to a key with another label or other scopes. Nothing was changed.
    #[error("the token already belongs to the API key {} ({}) with the scopes {}", .0.id, .0.label, .0.scopes)]
    Differs(ApiKey),
    /// The store failed. After [`ApiKeyStoreError::OutcomeUnknown`] the key may have been added.
    #[error(transparent)]
    Store(#[from] ApiKeyStoreError),
}

impl IssueApiKey {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Adds the key, whose id is new. A token that belongs to a key with the same label and scopes stays as it is, and
    /// that key is returned. Without a lifetime, the token does not expire.
    ///
    /// # Errors
    /// See [`IssueApiKeyError`].
    pub async fn execute(
        &self,
        key: ApiKey,
        token: &ApiToken,
        lifetime: Option<Duration>,
    ) -> Result<AddedKey, IssueApiKeyError> {
        match self.store.add(key.clone(), NewToken::new(token, lifetime)).await? {
            AddedKey::Existing(existing) if existing.label != key.label || existing.scopes != key.scopes => {
                Err(IssueApiKeyError::Differs(existing))
            }
            added => Ok(added),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiKeyLabel, Scope, Scopes, ports::MockApiKeyStore, test_support::api_key};

    async fn issue(added: Result<AddedKey, ApiKeyStoreError>) -> Result<AddedKey, IssueApiKeyError> {
        let (token, lifetime) = (ApiToken::parse("token".into()).unwrap(), Some(Duration::from_hours(7 * 24)));
        let stored = NewToken::new(&token, lifetime);
        let mut store = MockApiKeyStore::new();
        store
            .expect_add()
            .once()
            .withf(move |key, token| *key == api_key("new") && *token == stored)
            .return_once(|_, _| added);
        IssueApiKey::new(Arc::new(store)).execute(api_key("new"), &token, lifetime).await
    }

    #[tokio::test]
    async fn a_new_key_is_added() {
        assert_eq!(issue(Ok(AddedKey::New)).await.unwrap(), AddedKey::New);
    }

    #[tokio::test]
    async fn a_token_of_an_equal_key_stays_as_it_is() {
        let existing = ApiKey { label: api_key("new").label, ..api_key("old") };
        assert_eq!(issue(Ok(AddedKey::Existing(existing.clone()))).await.unwrap(), AddedKey::Existing(existing));
    }

    #[tokio::test]
    async fn a_token_of_a_key_with_another_label_or_other_scopes_is_refused() {
        let other_label = ApiKey { label: ApiKeyLabel::parse("other").unwrap(), ..api_key("new") };
        let other_scopes = ApiKey { scopes: Scopes::from_iter([Scope::Read]), ..api_key("new") };
        for existing in [other_label, other_scopes] {
            let error = issue(Ok(AddedKey::Existing(existing.clone()))).await.unwrap_err();
            assert!(matches!(error, IssueApiKeyError::Differs(key) if key == existing));
        }
    }

    #[tokio::test]
    async fn an_error_of_the_store_is_returned() {
        let error = issue(Err(ApiKeyStoreError::OutcomeUnknown("cut".into()))).await.unwrap_err();
        assert!(matches!(error, IssueApiKeyError::Store(ApiKeyStoreError::OutcomeUnknown(_))));
    }
}
