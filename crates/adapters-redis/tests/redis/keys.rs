//! Keys to test with.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_redis::{DirectorySettings, RedisApiKeyDirectory, RedisApiKeyStore, RedisEndpoint, Tls};
use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiToken,
    ports::{Added, ApiKeyDirectory, ApiKeyStore, DirectoryError, NewToken},
    test_support::api_key,
};

/// Longer than anything takes, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The defaults of the program.
pub(crate) fn settings(prefix: &str) -> DirectorySettings {
    DirectorySettings {
        prefix: prefix.to_owned(),
        timeout: Duration::from_millis(500),
        lease: Duration::from_millis(600),
        max_known: 1000,
        max_unknown: 1000,
        max_look_ups: 1000,
    }
}

/// A store, and what it takes to make directories over it.
pub(crate) struct Keys {
    pub(crate) store: RedisApiKeyStore,
    endpoint: RedisEndpoint,
    settings: DirectorySettings,
}

impl Keys {
    pub(crate) fn at(url: &str, settings: DirectorySettings) -> Self {
        Self::over(endpoint(url), settings)
    }

    pub(crate) fn over(endpoint: RedisEndpoint, settings: DirectorySettings) -> Self {
        let store = RedisApiKeyStore::new(endpoint.clone(), &settings.prefix, PATIENCE);
        Self { store, endpoint, settings }
    }

    pub(crate) async fn directory(&self) -> RedisApiKeyDirectory {
        RedisApiKeyDirectory::connect(self.endpoint.clone(), self.settings.clone()).await
    }

    pub(crate) async fn add(&self, id: &str, token: &str) -> ApiKey {
        let key = api_key(id);
        assert_eq!(self.store.add(key.clone(), new_token(token)).await.expect("add"), Added::New);
        key
    }

    pub(crate) async fn revoke(&self, key: &ApiKey) {
        assert!(self.store.revoke(&key.id).await.expect("revoke").is_some());
    }
}

pub(crate) fn endpoint(url: &str) -> RedisEndpoint {
    RedisEndpoint::new(&url.into(), Tls::default()).expect("an endpoint")
}

pub(crate) fn new_token(token: &str) -> NewToken {
    NewToken::new(&ApiToken::from_outside(token.into()).expect("a token"), None)
}

pub(crate) async fn find(directory: &RedisApiKeyDirectory, token: &str) -> Result<Option<Arc<ApiKey>>, DirectoryError> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}
