//! API keys in memory, for stores that notify no process of a change.
//!
//! **Problem.** A query for each request would cost more than the request, and other processes change keys.
//!
//! **Invariant.** A task compares the state of the keys with that of the store in each interval, and reads the changed
//! ones, or all of them if the store has another history (`history`). A lookup trusts the keys for a limited time after the beginning of the last successful check, and
//! otherwise waits for the next one. It compares the deadline itself, so a revoked key is accepted for that time at
//! most, whatever delays the task. Tokens expire by the clock of the store.
//!
//! **Proof.** `schedules.rs` (orders of steps), `tests.rs`; the contract suites of the adapters.

mod history;
#[cfg(all(test, shuttle))]
mod schedules;
mod snapshot;
#[cfg(test)]
mod tests;

use std::{
    mem,
    sync::Arc,
    time::{Duration, SystemTime},
};

use animal_store_app::{
    ApiKey, ApiKeyDigest, AuditEntry,
    ports::{ApiKeyDirectory, Cause, Readiness, StoreFailure},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{select, sync::watch};

pub(crate) use self::history::MARKS_KEPT;
use self::snapshot::{Difference, KnownKeys, Snapshot};
pub use self::{
    history::{KeyCounts, KeyState, new_mark},
    snapshot::{KeyDelta, StoredKey},
};
use crate::{
    Outage,
    concurrency::{Instant, sleep, timeout_at},
    metrics::FailureCounters,
};

/// Greatest number of changed keys that are logged after one check.
const LOGGED: usize = 1000;

/// A store whose keys have a state, which each change replaces.
pub trait KeySource: Send + 'static {
    /// Time between two checks. A check that is late by less than the difference to [`TRUST`](Self::TRUST) delays no
    /// lookup.
    const INTERVAL: Duration;
    /// How long the keys are trusted after the beginning of a check: the longest time for which a revoked key is
    /// accepted.
    const TRUST: Duration;

    /// Returns the address of the store, for the log.
    fn address(&self) -> String;

    /// Compares the state `known` with that of the store.
    fn check(
        &mut self,
        known: Option<&KeyState>,
    ) -> impl Future<Output = Result<KeyCheck, String>> + Send;
}

/// The result of a comparison.
pub struct KeyCheck {
    /// The time of the store.
    pub now: SystemTime,
    /// `None`: the state is the one that was known.
    pub delta: Option<KeyDelta>,
}

/// A directory of API keys that a task keeps up to date.
pub struct ApiKeySnapshot {
    snapshot: watch::Receiver<Snapshot>,
    /// Longest wait for a check.
    timeout: Duration,
    failures: FailureCounters,
}

impl ApiKeySnapshot {
    /// Creates a directory and its task, which ends after the directory is dropped, and registers metrics with the
    /// prefix `keys`. `timeout`: longest wait of a lookup for a check.
    pub fn new<S: KeySource>(
        source: S,
        timeout: Duration,
        registry: &mut Registry,
    ) -> (Self, impl Future<Output = ()> + Send + use<S>) {
        let registry = registry.sub_registry_with_prefix("keys");
        let failures = FailureCounters::register(
            registry,
            "lookup_failures",
            "Lookups of API keys without a result",
        );
        let (sender, snapshot) = watch::channel(Snapshot::new());
        (
            Self {
                snapshot,
                timeout,
                failures,
            },
            follow(source, sender),
        )
    }

    /// Reads the keys as soon as they are trusted.
    async fn read<T: Send>(
        &self,
        read: impl FnOnce(&Snapshot) -> T + Send,
    ) -> Result<T, StoreFailure> {
        let deadline = {
            let snapshot = self.snapshot.borrow();
            let now = Instant::now();
            if snapshot.is_trusted() {
                return Ok(read(&snapshot));
            }
            now + self.timeout
        };
        let mut checks = self.snapshot.clone();
        let is_over = |snapshot: &Snapshot| snapshot.failure.is_some() || snapshot.is_trusted();
        let checked = timeout_at(deadline, checks.wait_for(is_over))
            .await
            .map_err(|_| StoreFailure::Timeout)?;
        let snapshot = checked.map_err(|error| StoreFailure::Unavailable(Cause::of(&error)))?;
        match &snapshot.failure {
            Some(reason) => Err(StoreFailure::Unavailable(reason.clone().into())),
            None => Ok(read(&snapshot)),
        }
    }
}

#[async_trait]
impl ApiKeyDirectory for ApiKeySnapshot {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let found = self
            .read(|snapshot| snapshot.find(&digest))
            .await
            .and_then(|found| found);
        found.inspect_err(|failure| self.failures.count(failure))
    }
}

/// Ready while checks succeed.
#[async_trait]
impl Readiness for ApiKeySnapshot {
    async fn check(&self) -> Result<(), Cause> {
        Ok(self.read(|_| ()).await?)
    }
}

/// Checks the store until the directory is dropped.
async fn follow<S: KeySource>(mut source: S, snapshot: watch::Sender<Snapshot>) {
    let mut known = None;
    let mut outage = Outage::default();
    let mut recovery_began = Instant::now();
    while snapshot.receiver_count() > 0 {
        let began = Instant::now();
        let pause = match source.check(known.as_ref()).await {
            Ok(KeyCheck { now, delta }) => {
                let mut replacement = None;
                let mut increment = Vec::new();
                if let Some(delta) = delta {
                    if known.is_some() {
                        log_differences(&snapshot.borrow().keys.differences(&delta, now));
                    }
                    known = Some(delta.state);
                    if delta.is_complete {
                        let keys = replacement.insert(KnownKeys::default());
                        keys.apply(delta.keys);
                    } else {
                        increment = delta.keys;
                    }
                }
                // Lookups wait meanwhile. The old keys are dropped afterwards.
                snapshot.send_modify(|snapshot| {
                    if let Some(keys) = &mut replacement {
                        mem::swap(keys, &mut snapshot.keys);
                    }
                    snapshot.keys.apply(increment);
                    snapshot.clock = (now, Instant::now());
                    snapshot.trusted_until = began + S::TRUST;
                    snapshot.failure = None;
                });
                if outage.succeeded() {
                    tracing::info!(
                        address = source.address(),
                        "API keys can be looked up again"
                    );
                }
                S::INTERVAL.saturating_sub(began.elapsed())
            }
            Err(reason) => {
                let address = source.address();
                outage.failed(reason.clone(), |reason| {
                    tracing::error!(address, reason, "API keys cannot be read: requests get 503");
                });
                snapshot.send_modify(|snapshot| snapshot.failure = Some(reason));
                let pause = outage.next_pause(recovery_began.elapsed(), S::TRUST);
                recovery_began = Instant::now() + pause;
                pause
            }
        };
        select! {
            () = snapshot.closed() => {}
            () = sleep(pause) => {}
        }
    }
}

/// Logs changes since the first read. Of very many, the log would take longer than the keys are trusted.
fn log_differences(differences: &[Difference<'_>]) {
    for Difference { key, tokens } in differences.iter().take(LOGGED) {
        let id = &*key.id;
        let key = key.key.as_ref();
        let label = key.map_or("unreadable", |key| key.label.as_str());
        let scopes = key.map(|key| key.scopes.to_string()).unwrap_or_default();
        tracing::info!(
            target: AuditEntry::LOG_TARGET, api_key = id, api_key_label = label, scopes, tokens, "API key change seen"
        );
    }
    let records = differences.len().saturating_sub(LOGGED);
    if records > 0 {
        tracing::info!(target: AuditEntry::LOG_TARGET, records, "further API key changes seen");
    }
}
