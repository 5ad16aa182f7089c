//! Keys, stores and directories for the tests.

use std::str::FromStr;

use animal_store_adapter_kit::ApiKeyUseRecord;
use animal_store_adapters_redis::{RedisApiKeyUses, diagnose};
use animal_store_app::{ApiKeyDigest, Finding};
use animal_store_test_servers::sample;
use prometheus_client::encoding::text::encode;

use crate::prelude::*;

/// Long enough for any operation on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);
pub(crate) const LEASE: Duration = Duration::from_millis(400);
pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// Settings with a short timeout and a short lease.
pub(crate) fn settings() -> RedisSettings {
    RedisSettings {
        prefix: "shop:".to_owned(),
        timeout: Duration::from_millis(400),
        lease: LEASE,
        ..RedisSettings::default()
    }
}

/// Settings with a timeout that a busy machine does not exceed, and that a test can wait for. It is shorter than the
/// time between two heartbeats of a session without lookups.
pub(crate) fn few_seconds() -> RedisSettings {
    RedisSettings {
        timeout: Duration::from_secs(4),
        ..settings()
    }
}

/// Settings with which lookups wait for the next session for longer than any operation takes.
pub(crate) fn long_wait() -> RedisSettings {
    RedisSettings {
        timeout: TEST_TIMEOUT,
        ..settings()
    }
}

/// Settings with which the lease neither ends nor is renewed within a test, even if the machine stalls.
pub(crate) fn long_lease() -> RedisSettings {
    RedisSettings {
        lease: HOUR,
        ..settings()
    }
}

/// Settings with which no lookup ends within [`TEST_TIMEOUT`], and the lease is as in [`long_lease`].
pub(crate) fn long_timeouts() -> RedisSettings {
    RedisSettings {
        lease: HOUR,
        ..long_wait()
    }
}

/// A store, and the settings for directories over the same keys.
pub(crate) struct Keys {
    pub(crate) store: RedisApiKeyStore,
    endpoint: RedisEndpoint,
    settings: RedisSettings,
}

impl Keys {
    /// With [`long_timeouts`].
    pub(crate) fn of(server: &RedisServer) -> Self {
        Self::at(&server.url())
    }

    /// With [`long_timeouts`].
    pub(crate) fn at(url: &str) -> Self {
        Self::with(url, long_timeouts())
    }

    pub(crate) fn with(url: &str, settings: RedisSettings) -> Self {
        Self::over(endpoint(url), settings)
    }

    pub(crate) fn over(endpoint: RedisEndpoint, settings: RedisSettings) -> Self {
        let store = RedisApiKeyStore::new(endpoint.clone(), &settings.prefix, TEST_TIMEOUT, 0);
        Self {
            store,
            endpoint,
            settings,
        }
    }

    pub(crate) async fn diagnose(&self) -> Vec<Finding> {
        diagnose(&self.endpoint, &self.settings).await
    }

    pub(crate) async fn directory(&self) -> RedisApiKeyDirectory {
        self.measured_directory(&mut Registry::default()).await
    }

    /// Opens a directory that registers its metrics here.
    async fn measured_directory(&self, registry: &mut Registry) -> RedisApiKeyDirectory {
        let connecting =
            RedisApiKeyDirectory::connect(self.endpoint.clone(), self.settings.clone(), registry);
        connecting.await.0
    }

    /// Starts a record of uses that registers its metrics here. Returns the end of its writer as well.
    pub(crate) fn uses(&self, registry: &mut Registry) -> (ApiKeyUseRecord, JoinHandle<()>) {
        RedisApiKeyUses::start(self.endpoint.clone(), &self.settings, registry)
    }

    pub(crate) async fn change(&self, change: ApiKeyChange) -> ChangedApiKey {
        self.store
            .change(change, "test")
            .await
            .expect("the change is applied")
    }

    pub(crate) async fn add(&self, id: &str, token: &str) -> ApiKey {
        self.change(add(id, token, None))
            .await
            .after
            .expect("the key exists")
            .key
    }

    pub(crate) async fn revoke(&self, id: &str) {
        self.change(revoke(id)).await;
    }

    /// The ids of the listed keys, one for each token.
    pub(crate) async fn listed(&self) -> Vec<String> {
        let keys = self.store.list().await.expect("list");
        keys.iter()
            .flat_map(|key| key.tokens.iter().map(|_| key.key.id.to_string()))
            .collect()
    }
}

pub(crate) fn endpoint(url: &str) -> RedisEndpoint {
    RedisEndpoint::parse(&url.into(), RedisTls::default()).expect("an endpoint")
}

/// Returns the URL of the server behind a proxy.
pub(crate) fn url_of(proxy: &FaultProxy) -> String {
    format!("redis://{}", proxy.address())
}

/// Returns the name of a token in Redis.
pub(crate) fn name(token: &str) -> String {
    format!(
        "shop:v1:token:{}",
        hex::encode(ApiKeyDigest::of(&token.into()).0)
    )
}

pub(crate) async fn find(
    directory: &RedisApiKeyDirectory,
    token: &str,
) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
    directory.find(ApiKeyDigest::of(&token.into())).await
}

/// A server, a store, and a directory that reaches the server through a proxy.
pub(crate) struct Proxied {
    pub(crate) directory: Arc<RedisApiKeyDirectory>,
    /// The store does not use the proxy.
    pub(crate) keys: Keys,
    metrics: Registry,
    pub(crate) proxy: FaultProxy,
    pub(crate) server: RedisServer,
}

impl Proxied {
    pub(crate) async fn new(settings: RedisSettings) -> Self {
        Self::with_proxy(settings, |_| ()).await
    }

    /// Prepares the proxy before the directory connects.
    pub(crate) async fn with_proxy(
        settings: RedisSettings,
        prepare: impl FnOnce(&mut FaultProxy),
    ) -> Self {
        let server = RedisServer::start();
        let mut proxy = FaultProxy::to(server.port());
        prepare(&mut proxy);
        let keys = Keys::with(&server.url(), settings.clone());
        let mut metrics = Registry::default();
        let proxied = Keys::with(&url_of(&proxy), settings);
        let directory = Arc::new(proxied.measured_directory(&mut metrics).await);
        Self {
            directory,
            keys,
            metrics,
            proxy,
            server,
        }
    }

    /// Adds a key whose token is its id, and uses it until it is cached. Its absence is cached before, so that the
    /// invalidation of this change has arrived then.
    pub(crate) async fn add_and_cache(&self, token: &str) {
        self.becomes_cached(token, Refused).await;
        self.keys.add(token, token).await;
        self.becomes_cached(token, Accepted).await;
    }

    pub(crate) async fn becomes_cached(&self, token: &str, outcome: Outcome) {
        let is_cached = async || cached(&self.directory, token) == Some(outcome);
        wait_until("it is cached", is_cached).await;
    }

    /// Returns the value of a metric that counts.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> u64 {
        metric(&self.metrics, name)
    }

    /// Seconds for which the lease is still valid.
    pub(crate) fn lease(&self) -> f64 {
        metric(&self.metrics, "lease_remaining_seconds")
    }

    /// Number of lookups that failed for this reason.
    pub(crate) fn failures(&self, reason: &str) -> u64 {
        self.metric(&format!("lookup_failures_total{{reason=\"{reason}\"}}"))
    }

    /// Number of lookups that the server executed.
    pub(crate) fn lookups(&self) -> u32 {
        let counts = self.server.run("INFO commandstats");
        let count = counts
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_hmget:calls=")?.split(',').next());
        count.map_or(0, |count| count.parse().expect("a number"))
    }
}

/// Returns the value of a metric. The name includes labels: `cache_lookups_total{result="hit"}`.
#[track_caller]
pub(crate) fn metric<T: FromStr>(metrics: &Registry, name: &str) -> T {
    let mut text = String::new();
    encode(&mut text, metrics).expect("text");
    sample(&text, &format!("keys_{name}"))
}
