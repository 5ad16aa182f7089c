use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;

use super::{cache::Cache, lease::Lease, lookup_connection::LookupConnection};
use crate::{
    connection::{Connection, RedisEndpoint},
    layout::Layout,
    metrics::Metrics,
    settings::RedisSettings,
};

/// State that the directory and its session share.
pub(crate) struct LookupState<C = Connection> {
    pub(crate) endpoint: RedisEndpoint,
    pub(crate) cache: Arc<Cache>,
    pub(crate) lease: Lease,
    pub(crate) layout: Layout,
    /// Notified after each attempt to open a session.
    pub(crate) attempted: Notify,
    pub(crate) connection: LookupConnection<C>,
    pub(crate) metrics: Metrics,
}

impl<C: Clone + Send + Sync> LookupState<C> {
    pub(crate) fn new(endpoint: RedisEndpoint, settings: &RedisSettings, metrics: Metrics) -> Self {
        Self {
            endpoint,
            cache: Arc::new(Cache::new(settings.max_known, settings.max_unknown, settings.max_lookups)),
            lease: Lease::new(settings.lease),
            layout: Layout::new(&settings.prefix),
            attempted: Notify::new(),
            connection: LookupConnection::new(),
            metrics,
        }
    }

    /// Ends the session. For this long, lookups wait for the next one.
    pub(crate) fn end_session(&self, wait: Duration) {
        self.connection.end_session(wait);
        // Lookups of this session were registered before: their results are no longer cached.
        self.cache.clear();
        self.lease.expire();
    }

    /// Invalidates the cache entry of the token with this name in Redis.
    pub(crate) fn invalidate(&self, name: &[u8]) {
        if let Some(digest) = self.layout.digest(name) {
            self.cache.invalidate(&digest);
        }
    }
}
