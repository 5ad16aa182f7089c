use std::{sync::Arc, time::Duration};

use animal_store_app::{
    ApiKey, ApiKeyDigest,
    ports::{ApiKeyDirectory, NotReady, Readiness, StoreFailure},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{runtime::Handle, task::AbortHandle, time::timeout};

use super::{
    gauges::LookupGauges,
    query::{self, LookupError, TokenRecord},
    session,
    state::LookupState,
};
use crate::{concurrency::Instant, connection::RedisEndpoint, metrics::Metrics, settings::RedisSettings};

/// Looks API keys up in a cache that Redis invalidates, and in Redis if the cache has no entry.
pub struct RedisApiKeyDirectory {
    state: Arc<LookupState>,
    /// Runs the lookups: they continue when the request that started them is cancelled.
    runtime: Handle,
    timeout: Duration,
    session: AbortHandle,
}

impl RedisApiKeyDirectory {
    /// Opens a session with Redis. The current runtime keeps it up until the directory is dropped. Returns after the
    /// first attempt, successful or not, and at the latest after twice the timeout. Registers the metrics of the
    /// directory.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(endpoint: RedisEndpoint, settings: RedisSettings, registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("keys");
        let state = Arc::new(LookupState::new(endpoint, &settings, Metrics::register(registry)));
        registry.register_collector(Box::new(LookupGauges(Arc::clone(&state))));
        let session = tokio::spawn(session::supervise(settings.clone(), Arc::clone(&state)));
        let directory =
            Self { state, runtime: Handle::current(), timeout: settings.timeout, session: session.abort_handle() };
        // Without a session, each lookup fails with the reason.
        let _ = timeout(settings.timeout * 2, directory.state.attempted.notified()).await;
        directory
    }

    /// Queries Redis, or waits for the lookup of the same token that is in flight.
    async fn query(&self, digest: ApiKeyDigest) -> Result<TokenRecord, StoreFailure> {
        let started = self.state.cache.start_lookup(digest);
        let (mut outcome, pending) = started.map_err(|_| StoreFailure::Overloaded)?;
        if let Some(pending) = pending {
            let (state, limit) = (Arc::clone(&self.state), self.timeout);
            self.runtime.spawn(async move {
                let send = |connection| query::find_token(connection, &state.layout, &digest);
                let start = Instant::now();
                let outcome = state.connection.run(limit, send).await;
                if outcome.is_ok() {
                    state.metrics.lookup_duration.observe(start.elapsed().as_secs_f64());
                }
                pending.finish(outcome);
            });
        }
        // The lookup has a timeout. This one applies if the runtime is too busy to enforce that, or is shut down.
        let outcome = match timeout(self.timeout * 5 / 4, outcome.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => outcome.clone().unwrap_or(Err(LookupError::NotConnected)),
            Ok(Err(_)) => Err(LookupError::NotConnected),
            Err(_) => Err(LookupError::Timeout),
        };
        outcome.map_err(|error| error.into_directory_error(&self.state.endpoint, &self.state.layout))
    }
}

#[async_trait]
impl ApiKeyDirectory for RedisApiKeyDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let now = Instant::now();
        let LookupState { lease, cache, metrics, .. } = &*self.state;
        let cached = if lease.is_valid(now) { cache.get(&digest, now) } else { None };
        let record = if let Some(record) = cached {
            metrics.hits.inc();
            record
        } else {
            metrics.misses.inc();
            self.query(digest).await.inspect_err(|error| metrics.count_failure(error))?
        };
        Ok(record.key)
    }
}

/// Ready while the lease is valid.
#[async_trait]
impl Readiness for RedisApiKeyDirectory {
    async fn check(&self) -> Result<(), NotReady> {
        let ready = self.state.lease.is_valid(Instant::now());
        let reason = || LookupError::NotConnected.describe(&self.state.endpoint, &self.state.layout);
        if ready { Ok(()) } else { Err(NotReady(reason().into())) }
    }
}

impl Drop for RedisApiKeyDirectory {
    fn drop(&mut self) {
        self.session.abort();
    }
}
