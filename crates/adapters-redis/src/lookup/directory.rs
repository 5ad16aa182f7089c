use std::{convert::Infallible, sync::Arc};

use animal_store_app::{
    ApiKey, ApiKeyDigest,
    ports::{ApiKeyDirectory, Cause, Readiness, StoreFailure, StoreResult},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{runtime::Handle, select, sync::oneshot, task::JoinHandle, time::timeout};

use super::{
    cache::{LookupOutcome, OutcomeReceiver, PendingLookup},
    session,
    state::LookupState,
};
use crate::{
    concurrency::Instant,
    connection::RedisEndpoint,
    keyspace::RedisFailure,
    settings::RedisSettings,
    token::{self, TokenRecord},
};

/// Looks API keys up in a cache that Redis invalidates, and in Redis if the cache has no entry.
pub struct RedisApiKeyDirectory {
    state: Arc<LookupState>,
    /// Runs the lookups: they continue when the request that started them is cancelled.
    runtime: Handle,
    /// Dropping it ends the session.
    _open: oneshot::Sender<Infallible>,
}

impl RedisApiKeyDirectory {
    /// Opens a session with Redis. The task that is returned keeps it up on the current runtime, and ends after the
    /// directory is dropped. Returns after the first attempt, successful or not, and at the latest after twice the
    /// timeout. Registers the metrics of the directory.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect(
        endpoint: RedisEndpoint,
        settings: RedisSettings,
        registry: &mut Registry,
    ) -> (Self, JoinHandle<()>) {
        let state = Arc::new(LookupState::new(endpoint, &settings, registry));
        let (open, closed) = oneshot::channel();
        let supervise = session::supervise(settings.lease, Arc::clone(&state));
        let session = tokio::spawn(async {
            select! {
                () = supervise => {}
                _ = closed => {}
            }
        });
        let directory = Self {
            state,
            runtime: Handle::current(),
            _open: open,
        };
        // Without a session, each lookup fails with the reason.
        let _ = timeout(settings.timeout * 2, directory.state.attempted.notified()).await;
        (directory, session)
    }

    /// Returns the record in the cache, as long as the lease is valid.
    fn cached(&self, digest: &ApiKeyDigest) -> Option<TokenRecord> {
        self.state.lease.need();
        let now = Instant::now();
        if self.state.lease.is_valid(now) {
            self.state.cache.get(digest, now)
        } else {
            None
        }
    }

    /// Queries Redis, or waits for the lookup of the same token that is in flight.
    async fn query(&self, digest: ApiKeyDigest) -> StoreResult<TokenRecord> {
        let joined = self.state.cache.join_lookup(digest);
        let lookup = joined.map_err(|_| StoreFailure::Overloaded)?;
        if let Some(pending) = lookup.pending {
            self.run(pending);
        }
        let outcome = self.wait_for(lookup.outcome).await;
        self.state.keyspace.checked(outcome)
    }

    fn run(&self, lookup: PendingLookup) {
        let state = Arc::clone(&self.state);
        self.runtime.spawn(async move {
            let name = state.keyspace.token(&lookup.digest);
            let found = state.look_up(|connection| token::find(connection, &name));
            lookup.finish(found.await);
        });
    }

    /// Waits for a lookup, which has a timeout. This timeout is longer: it applies if the runtime is too busy to enforce
    /// that of the lookup. A runtime that is shut down drops the lookup.
    async fn wait_for(&self, mut outcome: OutcomeReceiver) -> LookupOutcome {
        let keyspace = &self.state.keyspace;
        let finished = outcome.wait_for(Option::is_some);
        let Ok(finished) = timeout(keyspace.timeout * 5 / 4, finished).await else {
            return Err(RedisFailure::Timeout);
        };
        let outcome = finished.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(keyspace.not_connected()))
    }
}

#[async_trait]
impl ApiKeyDirectory for RedisApiKeyDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> StoreResult<Option<Arc<ApiKey>>> {
        let metrics = &self.state.metrics;
        if let Some(record) = self.cached(&digest) {
            metrics.hits.inc();
            return Ok(record.key);
        }
        metrics.misses.inc();
        match self.query(digest).await {
            Ok(record) => Ok(record.key),
            Err(failure) => {
                metrics.failures.count(&failure);
                Err(failure)
            }
        }
    }

    fn find_in_memory(&self, digest: &ApiKeyDigest) -> Option<Arc<ApiKey>> {
        let key = self.cached(digest)?.key?;
        self.state.metrics.hits.inc();
        Some(key)
    }
}

/// Ready if the lease is valid, or is renewed as a lookup would renew it.
#[async_trait]
impl Readiness for RedisApiKeyDirectory {
    async fn check(&self) -> Result<(), Cause> {
        let renewed = self.state.look_up(|_| async { Ok(()) }).await;
        renewed.map_err(|failure| self.state.keyspace.describe(&failure).into())
    }
}
