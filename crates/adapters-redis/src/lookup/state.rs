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

use prometheus_client::registry::Registry;
use redis::Value;
use tokio::{
    select,
    sync::{Notify, watch},
};

use super::{cache::Cache, lease::Lease, metrics::Metrics};
use crate::{
    concurrency::time::{Instant, timeout, timeout_at},
    connection::{Connection, RedisEndpoint},
    keyspace::{self, Keyspace, RedisFailure},
    settings::RedisSettings,
};

/// State of the lookups over connections of the type `C`.
pub(crate) struct LookupState<C = Connection> {
    pub(crate) keyspace: Keyspace,
    pub(crate) cache: Arc<Cache>,
    pub(crate) lease: Arc<Lease>,
    pub(super) metrics: Metrics,
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
    /// Creates the state before the first session: lookups fail at once. Registers the metrics.
    pub(crate) fn new(
        endpoint: RedisEndpoint,
        settings: &RedisSettings,
        registry: &mut Registry,
    ) -> Self {
        let lease = Arc::new(Lease::new(settings.lease));
        Self {
            keyspace: Keyspace::new(endpoint, &settings.prefix, settings.timeout),
            cache: Arc::new(Cache::new(
                settings.max_known,
                settings.max_unknown,
                settings.max_lookups,
            )),
            metrics: Metrics::register(registry, Arc::clone(&lease)),
            lease,
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

    /// Runs a lookup within its timeout, in which it may wait for a session.
    pub(crate) async fn look_up<T, F>(
        &self,
        send: impl Fn(C) -> F + Send + Sync,
    ) -> keyspace::Result<T>
    where
        F: Future<Output = keyspace::Result<T>> + Send,
    {
        let outcome = timeout(self.keyspace.timeout, self.send_in_sessions(send)).await;
        outcome.unwrap_or(Err(RedisFailure::Timeout))
    }

    /// Sends a lookup, and again in the next session if the session ends before the response.
    async fn send_in_sessions<T, F>(
        &self,
        send: impl Fn(C) -> F + Send + Sync,
    ) -> keyspace::Result<T>
    where
        F: Future<Output = keyspace::Result<T>> + Send,
    {
        let mut link = self.link.subscribe();
        loop {
            let connection = self.connection(&mut link).await?;
            let sending = async {
                // The server of a session without a lease may be a replica by now.
                self.lease.valid().await;
                send(connection).await
            };
            let outcome = select! {
                biased;
                _ = link.changed() => continue,
                outcome = sending => outcome,
            };
            if let Err(failure) = &outcome
                && failure.is_disconnection()
            {
                // The session ends as well.
                let _ = link.changed().await;
                continue;
            }
            return outcome;
        }
    }

    /// Returns the connection of the session, or waits for the next one until `wait_until`.
    async fn connection(&self, link: &mut watch::Receiver<Link<C>>) -> keyspace::Result<C> {
        let wait_until = link.borrow_and_update().wait_until;
        let up = link.wait_for(|link| link.connection.is_some());
        let up = timeout_at(wait_until, up).await.ok();
        let connection = up
            .and_then(Result::ok)
            .and_then(|link| link.connection.clone());
        connection.ok_or_else(|| self.keyspace.not_connected())
    }
}
