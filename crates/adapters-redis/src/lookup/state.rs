//! What the directory and its session share.
//!
//! A short interruption delays lookups and does not fail them: a lookup without a session waits for the next one, until
//! a fixed time after the end of the last session. If Redis is unavailable for longer, lookups fail at once. A lookup
//! responds with what Redis returned during the session in which it was sent: if that session ends first, the lookup is
//! sent again in the next one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use animal_store_adapter_kit::metrics::{FailureCounters, counters, registered};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};
use redis::Value;
use tokio::{
    select,
    sync::{Notify, watch},
};

use super::{cache::Cache, lease::Lease};
use crate::{
    concurrency::time::{Instant, timeout, timeout_at},
    connection::{Connection, RedisEndpoint},
    keyspace::{self, Keyspace, RedisFailure},
    settings::RedisSettings,
};

/// Handles of the metrics of a directory. The gauge of the lease is computed when the metrics are read.
pub(crate) struct Metrics {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) failures: FailureCounters,
    pub(crate) connected: Gauge,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let help = "Lookups of API keys: hit in the cache, or miss";
        let [hits, misses] = counters(registry, "cache_lookups", help, "result", ["hit", "miss"]);
        let failures = FailureCounters::register(
            registry,
            "lookup_failures",
            "Lookups of API keys without a result",
        );
        let help = "1 if the session with Redis is up, otherwise 0";
        let connected = registered(registry, "redis_connected", help, Gauge::default());
        Self {
            hits,
            misses,
            failures,
            connected,
        }
    }
}

/// State of the lookups over connections of the type `C`.
pub(crate) struct LookupState<C = Connection> {
    pub(crate) keyspace: Keyspace,
    pub(crate) cache: Arc<Cache>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) metrics: Metrics,
    /// Whether Redis has removed all data (`FLUSHALL`, `FLUSHDB`), and that was not handled.
    pub(crate) flushed: AtomicBool,
    /// Notified after each attempt to open a session.
    pub(crate) attempted: Notify,
    link: watch::Sender<Link<C>>,
}

/// The connection for lookups, which each session replaces.
struct Link<C> {
    connection: Option<C>,
    /// Without a connection, lookups wait for one until this moment.
    wait_until: Instant,
}

impl<C: Clone + Send + Sync> LookupState<C> {
    /// Creates the state before the first session: lookups fail at once.
    pub(crate) fn new(endpoint: RedisEndpoint, settings: &RedisSettings, metrics: Metrics) -> Self {
        Self {
            keyspace: Keyspace::new(endpoint, &settings.prefix, settings.timeout),
            cache: Arc::new(Cache::new(
                settings.max_known,
                settings.max_unknown,
                settings.max_lookups,
            )),
            lease: Arc::new(Lease::new(settings.lease)),
            metrics,
            flushed: AtomicBool::new(false),
            attempted: Notify::new(),
            link: watch::Sender::new(Link {
                connection: None,
                wait_until: Instant::now(),
            }),
        }
    }

    pub(crate) fn begin_session(&self, connection: C) {
        self.link
            .send_modify(|link| link.connection = Some(connection));
    }

    /// Ends the session. For one timeout, lookups wait for the next one.
    pub(crate) fn end_session(&self) {
        self.link.send_replace(Link {
            connection: None,
            wait_until: Instant::now() + self.keyspace.timeout,
        });
        // Lookups of this session were registered before: their results are no longer cached.
        self.cache.clear();
        self.lease.expire();
    }

    /// Invalidates the cache entries of the tokens with these names in Redis. No array stands for all tokens.
    pub(crate) fn invalidate(&self, names: Option<&Value>) {
        let Some(Value::Array(names)) = names else {
            self.flushed.store(true, Ordering::Relaxed);
            return self.cache.clear();
        };
        for name in names {
            match name {
                Value::BulkString(name) if let Some(digest) = self.keyspace.digest(name) => {
                    self.cache.invalidate(&digest);
                }
                _ => self.cache.clear(),
            }
        }
    }

    /// Runs a lookup. The timeout includes the time for which it waits for a session.
    pub(crate) async fn look_up<T, F>(
        &self,
        send: impl Fn(C) -> F + Send + Sync,
    ) -> keyspace::Result<T>
    where
        F: Future<Output = keyspace::Result<T>> + Send,
    {
        let in_session = async {
            let mut link = self.link.subscribe();
            loop {
                let wait_until = link.borrow_and_update().wait_until;
                let up =
                    timeout_at(wait_until, link.wait_for(|link| link.connection.is_some())).await;
                let connection = up
                    .ok()
                    .and_then(Result::ok)
                    .and_then(|link| link.connection.clone());
                let connection = connection.ok_or_else(|| self.keyspace.not_connected())?;
                let outcome = async {
                    // The server of a session without a lease may be a replica by now.
                    self.lease.valid().await;
                    send(connection).await
                };
                select! {
                    biased;
                    _ = link.changed() => {}
                    outcome = outcome => match outcome {
                        // The session ends as well.
                        Err(failure) if failure.is_disconnection() => _ = link.changed().await,
                        outcome => return outcome,
                    },
                }
            }
        };
        timeout(self.keyspace.timeout, in_session)
            .await
            .unwrap_or(Err(RedisFailure::Timeout))
    }
}
