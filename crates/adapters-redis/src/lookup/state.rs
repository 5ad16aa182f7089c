use std::sync::Arc;

use tokio::sync::Notify;

use super::{cache::Cache, lease::Lease, lookup_connection::LookupConnection};
use crate::{connection::RedisEndpoint, layout::Layout, metrics::Metrics, settings::RedisSettings};

/// State that the directory and its session share.
pub(crate) struct LookupState {
    pub(crate) endpoint: RedisEndpoint,
    pub(crate) cache: Arc<Cache>,
    pub(crate) lease: Lease,
    pub(crate) layout: Layout,
    /// Notified after each attempt to open a session.
    pub(crate) attempted: Notify,
    pub(crate) connection: LookupConnection,
    pub(crate) metrics: Metrics,
}

impl LookupState {
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

    /// Invalidates the cache entry of the token with this name in Redis.
    pub(crate) fn invalidate(&self, name: &[u8]) {
        if let Some(digest) = self.layout.digest(name) {
            self.cache.invalidate(&digest);
        }
    }
}
