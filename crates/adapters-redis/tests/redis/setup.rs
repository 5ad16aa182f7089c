//! Keys, stores and directories for the tests.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyStore, RedisEndpoint, RedisSettings, RedisTls};
use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiToken,
    ports::{AddedKey, ApiKeyDirectory, ApiKeyDirectoryError, ApiKeyStore, NewToken},
    test_support::api_key,
};
use animal_store_test_servers::{FaultProxy, RedisServer};
use futures_util::FutureExt;

use crate::requests::{Accepted, becomes, wait_until};

/// Long enough for any operation on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of connections and responses.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(400);
pub(crate) const LEASE: Duration = Duration::from_millis(400);
/// Margin of a timeout for a busy machine.
pub(crate) const MARGIN: Duration = Duration::from_secs(5);

/// Settings with short timeouts.
pub(crate) fn settings(prefix: &str) -> RedisSettings {
    RedisSettings {
        prefix: prefix.to_owned(),
        timeout: TIMEOUT,
        lease: LEASE,
        max_known: 1000,
        max_unknown: 1000,
        max_lookups: 1000,
    }
}

/// Settings with which neither the lease nor a lookup ends within [`TEST_TIMEOUT`].
pub(crate) fn long_timeouts() -> RedisSettings {
    RedisSettings { timeout: TEST_TIMEOUT, lease: 2 * TEST_TIMEOUT, ..settings("shop:") }
}

/// Settings with which the lease does not end within [`TEST_TIMEOUT`].
pub(crate) fn long_lease() -> RedisSettings {
    RedisSettings { timeout: TIMEOUT, ..long_timeouts() }
}

/// A store, and the settings for directories over the same keys.
pub(crate) struct Keys {
    pub(crate) store: RedisApiKeyStore,
    endpoint: RedisEndpoint,
    settings: RedisSettings,
}

impl Keys {
    pub(crate) fn at(url: &str, settings: RedisSettings) -> Self {
        Self::over(endpoint(url), settings)
    }

    pub(crate) fn over(endpoint: RedisEndpoint, settings: RedisSettings) -> Self {
        let store = RedisApiKeyStore::new(endpoint.clone(), &settings.prefix, TEST_TIMEOUT);
        Self { store, endpoint, settings }
    }

    pub(crate) async fn directory(&self) -> RedisApiKeyDirectory {
        RedisApiKeyDirectory::connect(self.endpoint.clone(), self.settings.clone()).await
    }

    pub(crate) async fn add(&self, id: &str, token: &str) -> ApiKey {
        let key = api_key(id);
        assert_eq!(self.store.add(key.clone(), new_token(token)).await.expect("add"), AddedKey::New);
        key
    }

    pub(crate) async fn revoke(&self, key: &ApiKey) {
        assert!(self.store.revoke(&key.id).await.expect("revoke").is_some());
    }
}

pub(crate) fn endpoint(url: &str) -> RedisEndpoint {
    RedisEndpoint::parse(&url.into(), RedisTls::default()).expect("an endpoint")
}

pub(crate) fn new_token(token: &str) -> NewToken {
    NewToken::new(&ApiToken::parse(token.into()).expect("a token"), None)
}

/// Returns the name of a token in Redis.
pub(crate) fn name(prefix: &str, token: &str) -> String {
    format!("{prefix}v1:token:{}", hex::encode(ApiKeyDigest::of(&token.into()).as_bytes()))
}

pub(crate) async fn find(
    directory: &RedisApiKeyDirectory,
    token: &str,
) -> Result<Option<Arc<ApiKey>>, ApiKeyDirectoryError> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}

/// Whether the cache contains this token with a key. If it does not, this starts a lookup.
pub(crate) fn is_cached(directory: &RedisApiKeyDirectory, token: &str) -> bool {
    matches!(find(directory, token).now_or_never(), Some(Ok(Some(_))))
}

/// A server, a store, and a directory that reaches the server through a proxy.
pub(crate) struct Proxied {
    pub(crate) directory: RedisApiKeyDirectory,
    /// The store does not use the proxy.
    pub(crate) keys: Keys,
    pub(crate) proxy: FaultProxy,
    pub(crate) server: RedisServer,
}

impl Proxied {
    pub(crate) async fn new(settings: RedisSettings) -> Self {
        Self::with_proxy(settings, |_| ()).await
    }

    /// Prepares the proxy before the directory connects.
    pub(crate) async fn with_proxy(settings: RedisSettings, prepare: impl FnOnce(&mut FaultProxy)) -> Self {
        let server = RedisServer::start();
        let mut proxy = FaultProxy::to(server.port());
        prepare(&mut proxy);
        let keys = Keys::at(&server.url(), settings.clone());
        let directory = Keys::at(&format!("redis://{}", proxy.address()), settings).directory().await;
        Self { directory, keys, proxy, server }
    }

    /// Adds a key and uses it until it is cached.
    pub(crate) async fn add_and_cache(&self, id: &str, token: &str) -> ApiKey {
        let key = self.keys.add(id, token).await;
        becomes(&self.directory, token, Accepted).await;
        wait_until("the key is cached", async || is_cached(&self.directory, token)).await;
        key
    }

    /// Number of lookups that the server executed.
    pub(crate) fn lookups(&self) -> u32 {
        calls(&self.server, "hmget")
    }
}

/// Number of executions of a command on the server.
pub(crate) fn calls(server: &RedisServer, command: &str) -> u32 {
    let counts = server.command_counts();
    let count = counts.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// Returns the client id of the connection on which Redis sends invalidations.
pub(crate) fn invalidations_client(server: &RedisServer) -> Option<String> {
    let clients = server.command(&["CLIENT", "LIST"]);
    let tracking = clients.lines().find(|client| client.contains(" flags=tB "))?;
    tracking.split(' ').next().map(str::to_owned)
}
