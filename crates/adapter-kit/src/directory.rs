//! API keys in memory, for stores that notify no process of a change.
//!
//! **Problem.** A query for each request would cost more than the request, and other processes change keys.
//!
//! **Invariant.** A task compares the state of the keys with that of the store, and reads the changed ones, or all of
//! them if the store has another history (`history`). It does so in each interval in which lookups come; without
//! lookups, it sends nothing to the store, except for the first check, and for retries after a failure (`demand`). A
//! lookup trusts the keys for a limited time after the beginning of the last successful check, and otherwise waits for
//! the next one. It compares the deadline itself, so a revoked key is accepted for that time at most, whatever delays
//! the task. Tokens expire by the clock of the store.
//!
//! **Proof.** `schedules.rs` (orders of steps), `tests.rs`; the contract suites of the adapters.

mod demand;
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
    ports::{ApiKeyDirectory, Cause, Readiness, StoreFailure, StoreResult},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{select, sync::watch};

pub(crate) use self::history::{MARKS_KEPT, new_mark};
use self::{
    demand::Demand,
    snapshot::{Difference, KnownKeys, Snapshot, StoreClock},
};
pub use self::{
    history::{KeyCounts, KeyState},
    snapshot::{KeyDelta, StoredKey, StoredToken},
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
    /// Time between two checks while lookups come. A check that is late by less than the difference to
    /// [`TRUST`](Self::TRUST) delays no lookup.
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
    demand: Arc<Demand>,
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
        let demand = Arc::new(Demand::default());
        let task = follow(source, sender, Arc::clone(&demand));
        let directory = Self {
            snapshot,
            demand,
            timeout,
            failures,
        };
        (directory, task)
    }

    /// Reads the keys as soon as they are trusted.
    async fn read<T: Send>(&self, read: impl FnOnce(&Snapshot) -> T + Send) -> StoreResult<T> {
        self.demand.ask();
        {
            let snapshot = self.snapshot.borrow();
            if snapshot.is_trusted() {
                return Ok(read(&snapshot));
            }
        }
        let deadline = Instant::now() + self.timeout;
        let mut checks = self.snapshot.clone();
        loop {
            {
                let snapshot = checks.borrow_and_update();
                if let Some(reason) = &snapshot.failure {
                    return Err(StoreFailure::Unavailable(reason.clone().into()));
                }
                if snapshot.is_trusted() {
                    return Ok(read(&snapshot));
                }
            }
            // A check that took too long may have been the last one.
            self.demand.ask();
            timeout_at(deadline, checks.changed())
                .await
                .map_err(|_| StoreFailure::Timeout)?
                .map_err(|error| StoreFailure::Unavailable(Cause::of(&error)))?;
        }
    }
}

#[async_trait]
impl ApiKeyDirectory for ApiKeySnapshot {
    async fn find(&self, digest: ApiKeyDigest) -> StoreResult<Option<Arc<ApiKey>>> {
        let read = self.read(|snapshot| snapshot.find(&digest)).await;
        let found = read.and_then(|found| found);
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
async fn follow<S: KeySource>(
    mut source: S,
    snapshot: watch::Sender<Snapshot>,
    demand: Arc<Demand>,
) {
    let mut known = None;
    let mut outage = Outage::default();
    let mut attempt_began = Instant::now();
    let mut was_idle = false;
    while snapshot.receiver_count() > 0 {
        demand.reset();
        let mut began = Instant::now();
        let mut checked = source.check(known.as_ref()).await;
        // The connection may have ended while there were no lookups.
        if checked.is_err() && was_idle {
            began = Instant::now();
            checked = source.check(known.as_ref()).await;
        }
        match checked {
            Ok(check) => {
                update::<S>(&snapshot, &mut known, check, began);
                if outage.succeeded() {
                    tracing::info!(
                        address = source.address(),
                        "API keys can be looked up again"
                    );
                }
                let pause = S::INTERVAL.saturating_sub(began.elapsed());
                let next = async {
                    sleep(pause).await;
                    demand.wait().await
                };
                select! {
                    () = snapshot.closed() => {}
                    has_waited = next => was_idle = has_waited,
                }
            }
            Err(reason) => {
                let address = source.address();
                outage.failed(reason.clone(), |reason| {
                    tracing::error!(address, reason, "API keys cannot be read: requests get 503");
                });
                snapshot.send_modify(|snapshot| snapshot.failure = Some(reason));
                let pause = outage.next_pause(attempt_began.elapsed(), S::TRUST);
                select! {
                    () = snapshot.closed() => {}
                    () = sleep(pause) => {}
                }
                attempt_began = Instant::now();
                was_idle = false;
            }
        }
    }
}

/// Shows the result of a check to lookups.
fn update<S: KeySource>(
    snapshot: &watch::Sender<Snapshot>,
    known: &mut Option<KeyState>,
    KeyCheck { now, delta }: KeyCheck,
    began: Instant,
) {
    let mut replacement = None;
    let mut increment = Vec::new();
    if let Some(delta) = delta {
        if known.is_some() {
            log_differences(&snapshot.borrow().keys.differences(&delta, now));
        }
        *known = Some(delta.state);
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
        snapshot.clock = StoreClock::at(now, began);
        snapshot.trusted_until = began + S::TRUST;
        snapshot.failure = None;
    });
}

/// Logs changes since the first read. Of very many, the log would take longer than the keys are trusted.
fn log_differences(differences: &[Difference<'_>]) {
    for Difference { key, tokens } in differences.iter().take(LOGGED) {
        let api_key = key.id.as_str();
        let mut api_key_label = "unreadable";
        let mut scopes = String::new();
        if let Ok(key) = &key.key {
            api_key_label = key.label.as_str();
            scopes = key.scopes.to_string();
        }
        tracing::info!(
            target: AuditEntry::LOG_TARGET, api_key, api_key_label, scopes, tokens, "API key change seen"
        );
    }
    let records = differences.len().saturating_sub(LOGGED);
    if records > 0 {
        tracing::info!(target: AuditEntry::LOG_TARGET, records, "further API key changes seen");
    }
}
