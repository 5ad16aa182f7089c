use std::sync::{Arc, PoisonError, RwLock};

use redis::aio::MultiplexedConnection;
use tokio::sync::Notify;

use super::{cache::Cache, lease::Lease};
use crate::{layout::Layout, settings::RedisSettings};

/// State that the directory and its session share.
pub(crate) struct LookupState {
    pub(crate) cache: Arc<Cache>,
    pub(crate) lease: Lease,
    pub(crate) layout: Layout,
    /// Notified after each attempt to open a session.
    pub(crate) attempted: Notify,
    connection: RwLock<Option<MultiplexedConnection>>,
}

impl LookupState {
    pub(crate) fn new(settings: &RedisSettings) -> Self {
        Self {
            cache: Arc::new(Cache::new(settings.max_known, settings.max_unknown, settings.max_lookups)),
            lease: Lease::new(settings.lease),
            layout: Layout::new(&settings.prefix),
            attempted: Notify::new(),
            connection: RwLock::default(),
        }
    }

    /// Invalidates the cache entry of the token with this name in Redis.
    pub(crate) fn invalidate(&self, name: &[u8]) {
        if let Some(digest) = self.layout.digest(name) {
            self.cache.invalidate(&digest);
        }
    }

    /// Returns the connection for lookups, if there is a session.
    pub(crate) fn connection(&self) -> Option<MultiplexedConnection> {
        self.connection.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_connection(&self, connection: Option<MultiplexedConnection>) {
        *self.connection.write().unwrap_or_else(PoisonError::into_inner) = connection;
    }
}
