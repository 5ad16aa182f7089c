use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{
    ApiKey, ApiKeyId, ApiKeyLabel, ApiToken, Scopes,
    ports::{Added, ApiKeyStore, ApiKeyStoreError, Cause, NewToken, RandomSource},
};

/// Makes an API key, or takes one over from another system.
pub struct IssueApiKey {
    store: Arc<dyn ApiKeyStore>,
    random: Arc<dyn RandomSource>,
}

/// The key that is wanted.
#[derive(Debug, Clone)]
pub struct IssueRequest {
    /// What people call it.
    pub label: ApiKeyLabel,
    /// What it may do.
    pub scopes: Scopes,
    /// How long it is valid; `None` is for ever.
    pub lifetime: Option<Duration>,
    /// Its token, where it has one already.
    pub token: Option<ApiToken>,
}

/// What became of it.
#[derive(Debug)]
pub enum IssuedApiKey {
    /// A key with a new token, which can never be shown again.
    Created(ApiKey, ApiToken),
    /// A key with the token that was given.
    Registered(ApiKey),
    /// The token was registered already, and nothing was changed.
    Existing(ApiKey),
}

/// Why there is no such key.
#[derive(Debug, Error)]
pub enum IssueApiKeyError {
    /// The token belongs to a key with another label or other scopes, and nothing was changed.
    #[error("the token belongs to the API key {id} ({label}) already, whose scopes are {scopes}", id = .0.id, label = .0.label, scopes = .0.scopes)]
    Differs(ApiKey),
    /// There is nothing to make a token of.
    #[error("no random bits can be had")]
    NoRandomBits(#[source] Cause),
    /// The key may have been made.
    #[error("it is unknown whether the API key {id} was made", id = .0.id)]
    OutcomeUnknown(ApiKey, #[source] Cause),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ApiKeyStoreError),
}

impl IssueApiKey {
    /// Keeps keys in this store, and makes ids and tokens of these bits.
    pub fn new(store: Arc<dyn ApiKeyStore>, random: Arc<dyn RandomSource>) -> Self {
        Self { store, random }
    }

    /// Makes the key.
    ///
    /// # Errors
    /// See [`IssueApiKeyError`].
    pub async fn execute(&self, request: IssueRequest) -> Result<IssuedApiKey, IssueApiKeyError> {
        let bits = || self.random.bits().map_err(IssueApiKeyError::NoRandomBits);
        let key = ApiKey { id: ApiKeyId::from_random(&bits()?), label: request.label, scopes: request.scopes };
        let (token, given) = match request.token {
            Some(token) => (token, true),
            None => (ApiToken::from_random(&bits()?), false),
        };
        let added = match self.store.add(key.clone(), NewToken::new(&token, request.lifetime)).await {
            Err(ApiKeyStoreError::OutcomeUnknown(cause)) => return Err(IssueApiKeyError::OutcomeUnknown(key, cause)),
            added => added?,
        };
        match added {
            Added::New if given => Ok(IssuedApiKey::Registered(key)),
            Added::New => Ok(IssuedApiKey::Created(key, token)),
            Added::Exists(old) if old.label == key.label && old.scopes == key.scopes => Ok(IssuedApiKey::Existing(old)),
            Added::Exists(old) => Err(IssueApiKeyError::Differs(old)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Scope,
        ports::{MockApiKeyStore, MockRandomSource},
    };

    const WEEK: Duration = Duration::from_hours(7 * 24);

    fn request(token: Option<&str>) -> IssueRequest {
        IssueRequest {
            label: ApiKeyLabel::parse("shop").unwrap(),
            scopes: Scopes::from_iter([Scope::Read]),
            lifetime: Some(WEEK),
            token: token.map(|token| ApiToken::from_outside(token.into()).unwrap()),
        }
    }

    /// Bits that differ each time: all 1, then all 2.
    fn random() -> MockRandomSource {
        let mut random = MockRandomSource::new();
        let mut byte = 0;
        random.expect_bits().returning(move || {
            byte += 1;
            Ok([byte; 32])
        });
        random
    }

    async fn issue(store: MockApiKeyStore, request: IssueRequest) -> Result<IssuedApiKey, IssueApiKeyError> {
        IssueApiKey::new(Arc::new(store), Arc::new(random())).execute(request).await
    }

    fn existing(label: &str, scopes: Scopes) -> MockApiKeyStore {
        let key = ApiKey { id: ApiKeyId::new("old"), label: ApiKeyLabel::parse(label).unwrap(), scopes };
        let mut store = MockApiKeyStore::new();
        store.expect_add().once().return_once(|_, _| Ok(Added::Exists(key)));
        store
    }

    #[tokio::test]
    async fn a_new_key_has_an_id_and_a_token_of_bits_of_their_own() {
        let token = ApiToken::from_random(&[2; 32]);
        let stored = NewToken::new(&token, Some(WEEK));
        let mut store = MockApiKeyStore::new();
        store
            .expect_add()
            .once()
            .withf(move |key, token| key.id == ApiKeyId::from_random(&[1; 32]) && *token == stored)
            .return_once(|_, _| Ok(Added::New));

        let IssuedApiKey::Created(key, issued) = issue(store, request(None)).await.unwrap() else {
            panic!("a new key")
        };
        assert_eq!(issued.digest(), token.digest());
        assert_eq!((key.label.as_str(), key.scopes.to_string()), ("shop", "read".to_owned()));
    }

    #[tokio::test]
    async fn a_token_from_elsewhere_is_registered_as_it_is() {
        let digest = ApiToken::from_outside("elsewhere".into()).unwrap().digest();
        let mut store = MockApiKeyStore::new();
        store.expect_add().once().withf(move |_, token| token.digest == digest).return_once(|_, _| Ok(Added::New));

        assert!(matches!(issue(store, request(Some("elsewhere"))).await, Ok(IssuedApiKey::Registered(_))));
    }

    #[tokio::test]
    async fn a_token_that_is_registered_already_stays_as_it_is() {
        let store = existing("shop", Scopes::from_iter([Scope::Read]));

        let IssuedApiKey::Existing(key) = issue(store, request(Some("elsewhere"))).await.unwrap() else {
            panic!("the old key")
        };
        assert_eq!(key.id.as_str(), "old");
    }

    #[tokio::test]
    async fn a_token_that_is_registered_otherwise_is_refused() {
        for store in [existing("other", Scopes::from_iter([Scope::Read])), existing("shop", Scopes::ALL)] {
            let error = issue(store, request(Some("elsewhere"))).await.unwrap_err();
            assert!(matches!(&error, IssueApiKeyError::Differs(key) if key.id.as_str() == "old"));
        }
    }

    #[tokio::test]
    async fn a_key_that_may_have_been_made_is_named() {
        let mut store = MockApiKeyStore::new();
        store.expect_add().once().return_once(|_, _| Err(ApiKeyStoreError::OutcomeUnknown("cut".into())));

        let error = issue(store, request(None)).await.unwrap_err();
        let IssueApiKeyError::OutcomeUnknown(key, _) = &error else { panic!("{error:?}") };
        assert_eq!(key.id, ApiKeyId::from_random(&[1; 32]));
        assert!(error.to_string().contains(key.id.as_str()), "{error}");
    }

    #[tokio::test]
    async fn a_store_that_fails_and_bits_that_cannot_be_had_are_told_apart() {
        let mut store = MockApiKeyStore::new();
        store.expect_add().once().return_once(|_, _| Err(ApiKeyStoreError::Unavailable("away".into())));
        assert!(matches!(issue(store, request(None)).await, Err(IssueApiKeyError::Store(_))));

        let mut random = MockRandomSource::new();
        random.expect_bits().returning(|| Err("none".into()));
        let issue = IssueApiKey::new(Arc::new(MockApiKeyStore::new()), Arc::new(random));
        assert!(matches!(issue.execute(request(None)).await, Err(IssueApiKeyError::NoRandomBits(_))));
    }
}
