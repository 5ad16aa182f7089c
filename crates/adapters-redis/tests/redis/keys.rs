//! Keys to test with.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyStore, RedisEndpoint, RedisSettings, Tls};
use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiToken,
    ports::{AddedKey, ApiKeyDirectory, ApiKeyDirectoryError, ApiKeyStore, NewToken},
    test_support::api_key,
};
use animal_store_test_servers::{FaultProxy, RedisServer};

use crate::uses::{Accepted, comes_to};

/// Longer than anything takes, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a connection and an answer may take.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);
/// How long a cached answer counts without a sign of life.
pub(crate) const LEASE: Duration = Duration::from_millis(600);
/// How late a busy machine may be with what is due.
pub(crate) const MARGIN: Duration = Duration::from_secs(2);
/// How soon a change that Redis reports has to be taken up.
pub(crate) const REPORTED: Duration = Duration::from_millis(100);

/// The defaults of the program.
pub(crate) fn settings(prefix: &str) -> RedisSettings {
    RedisSettings {
        prefix: prefix.to_owned(),
        timeout: TIMEOUT,
        lease: LEASE,
        max_known: 1000,
        max_unknown: 1000,
        max_look_ups: 1000,
    }
}

/// With a session and look-ups that outlive any stall of the machine.
pub(crate) fn patient() -> RedisSettings {
    RedisSettings { timeout: PATIENCE, lease: 2 * PATIENCE, ..settings("shop:") }
}

/// A store, and what it takes to make directories over it.
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
        let store = RedisApiKeyStore::new(endpoint.clone(), &settings.prefix, PATIENCE);
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
    RedisEndpoint::new(&url.into(), Tls::default()).expect("an endpoint")
}

pub(crate) fn new_token(token: &str) -> NewToken {
    NewToken::new(&ApiToken::parse(token.into()).expect("a token"), None)
}

/// The name of a token in Redis.
pub(crate) fn name(prefix: &str, token: &str) -> String {
    format!("{prefix}v1:token:{}", hex::encode(ApiKeyDigest::of(&token.into()).as_bytes()))
}

pub(crate) async fn find(
    directory: &RedisApiKeyDirectory,
    token: &str,
) -> Result<Option<Arc<ApiKey>>, ApiKeyDirectoryError> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}

/// A server, a store beside it, and a directory behind a link that can fail.
pub(crate) struct Linked {
    pub(crate) directory: RedisApiKeyDirectory,
    /// Not behind the link.
    pub(crate) keys: Keys,
    pub(crate) link: FaultProxy,
    pub(crate) server: RedisServer,
}

impl Linked {
    pub(crate) async fn new() -> Self {
        Self::with(settings("shop:"), |_| ()).await
    }

    /// With a link that is in this state before the directory begins.
    pub(crate) async fn with(settings: RedisSettings, prepare: impl FnOnce(&mut FaultProxy)) -> Self {
        let server = RedisServer::start();
        let mut link = FaultProxy::to(server.port());
        prepare(&mut link);
        let keys = Keys::at(&server.url(), settings.clone());
        let directory = Keys::at(&format!("redis://{}", link.address()), settings).directory().await;
        Self { directory, keys, link, server }
    }

    /// Adds a key, and has it found until it is found in the cache.
    pub(crate) async fn add_and_cache(&self, id: &str, token: &str) -> ApiKey {
        let key = self.keys.add(id, token).await;
        let start = Instant::now();
        loop {
            let look_ups = self.look_ups();
            comes_to(&self.directory, token, Accepted).await;
            if self.look_ups() == look_ups {
                return key;
            }
            assert!(start.elapsed() < PATIENCE, "{token} is not cached");
        }
    }

    /// How often Redis was asked for a token.
    pub(crate) fn look_ups(&self) -> u32 {
        calls(&self.server, "hmget")
    }
}

/// How often the server carried this command out.
pub(crate) fn calls(server: &RedisServer, command: &str) -> u32 {
    let counts = server.command_counts();
    let count = counts.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// Writes down the middle one and the longest, which is returned.
#[expect(clippy::print_stdout, reason = "a measurement is worth more than that it was short enough")]
pub(crate) fn report(what: &str, windows: &mut [Duration]) -> Duration {
    windows.sort();
    let longest = windows[windows.len() - 1];
    println!("{what}, {} times: p50 {:?}, longest {longest:?}", windows.len(), windows[windows.len() / 2]);
    longest
}
