//! Lookup of API keys in memory, for stores that do not notify anyone of a change.
//!
//! **Problem.** A query for each request would cost more than the request, and other processes change keys.
//!
//! **Invariant.** All keys are in memory. A task compares their version with that of the store every 50 ms, and reads the
//! keys that have changed. A lookup trusts them until 100 ms after the beginning of the last successful check, and
//! otherwise waits for the next one. So a revoked key is accepted for 100 ms at most, whatever delays the task: the
//! lookup compares the deadline itself.
//!
//! **Proof.** `schedules.rs` (orders of steps), `tests.rs`; the contract suites of the adapters.

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiKeyId,
    ports::{ApiKeyDirectory, NotReady, Readiness, StoreFailure},
};
use async_trait::async_trait;
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::{select, sync::watch, task::JoinHandle};

use crate::{
    Outage,
    concurrency::{Instant, sleep, timeout_at},
    metrics::{Count, counter, counters},
};

/// Time between the beginnings of two checks. A check that is late by less than the difference to [`TRUST`] delays no
/// lookup.
const INTERVAL: Duration = Duration::from_millis(50);
/// How long the keys are trusted after the beginning of a check: the longest time for which a revoked key is accepted.
const TRUST: Duration = Duration::from_millis(100);

/// A store whose keys have a version, which each change increases.
pub trait KeySource: Send + 'static {
    /// Returns the address of the store, for the log.
    fn address(&self) -> String;

    /// Returns the keys that have changed since the version `known`, or all keys without it. `None`: nothing has changed.
    fn changes(&mut self, known: Option<i64>) -> impl Future<Output = Result<Option<KeyChanges>, String>> + Send;
}

/// Changed keys, of one state of the store.
#[derive(Debug)]
pub struct KeyChanges {
    /// The version of that state.
    pub version: i64,
    /// Whether no other key exists.
    pub all: bool,
    /// The keys. One without tokens does not exist.
    pub keys: Vec<StoredKey>,
}

/// An API key, as a store keeps it.
#[derive(Debug)]
pub struct StoredKey {
    /// The id, which may be malformed.
    pub id: ApiKeyId,
    /// The key, or the reason why it is not valid.
    pub key: Result<ApiKey, String>,
    /// The digests of its tokens, with their expiry times.
    pub tokens: Vec<(ApiKeyDigest, Option<SystemTime>)>,
}

/// A directory of API keys that a task keeps up to date.
pub struct ApiKeySnapshot {
    snapshot: watch::Receiver<Snapshot>,
    /// Longest wait for a check.
    timeout: Duration,
    /// Failed lookups, in the order of [`Self::count`].
    failures: [Counter; 3],
}

/// The keys of the last successful check.
struct Snapshot {
    tokens: HashMap<ApiKeyDigest, Token>,
    trusted_until: Instant,
    /// Why the last check failed.
    failure: Option<String>,
}

struct Token {
    id: ApiKeyId,
    key: Result<Arc<ApiKey>, String>,
    expires: Option<SystemTime>,
}

/// Checks the store.
struct Follower<S> {
    source: S,
    known: Option<i64>,
    snapshot: watch::Sender<Snapshot>,
    outage: Outage,
    tokens: Count,
    reloads: Counter,
}

impl ApiKeySnapshot {
    /// Starts the task, and registers its metrics with the prefix `keys`. `timeout`: longest wait of a lookup for a
    /// check. The handle resolves after the directory is dropped, and the source is.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(source: impl KeySource, timeout: Duration, registry: &mut Registry) -> (Self, JoinHandle<()>) {
        let (directory, follower) = Self::new(source, timeout, registry);
        (directory, tokio::spawn(follower.run()))
    }

    fn new<S: KeySource>(source: S, timeout: Duration, registry: &mut Registry) -> (Self, Follower<S>) {
        let registry = registry.sub_registry_with_prefix("keys");
        let help = "Lookups without a result: timeout, unavailable or corrupt";
        let reasons = ["timeout", "unavailable", "corrupt"];
        let failures = counters(registry, "lookup_failures", help, "reason", reasons);
        let (tokens, outage) = (Count::default(), Outage::new(&Arc::default()));
        registry.register("tokens", "Tokens in memory", tokens.clone());
        let reloads = counter(registry, "reloads", "Times that API keys were read because they had changed");
        let (sender, snapshot) = watch::channel(Snapshot::new());
        let follower = Follower { source, known: None, snapshot: sender, outage, tokens, reloads };
        (Self { snapshot, timeout, failures }, follower)
    }

    /// Reads the keys as soon as they are trusted.
    async fn read<T: Send>(&self, read: impl FnOnce(&Snapshot) -> T + Send) -> Result<T, StoreFailure> {
        {
            let snapshot = self.snapshot.borrow();
            if snapshot.is_trusted() {
                return Ok(read(&snapshot));
            }
        }
        let mut checks = self.snapshot.clone();
        let is_over = |snapshot: &Snapshot| snapshot.failure.is_some() || snapshot.is_trusted();
        let checked = timeout_at(Instant::now() + self.timeout, checks.wait_for(is_over)).await;
        let snapshot = checked.map_err(|_| StoreFailure::Timeout)?;
        let snapshot = snapshot.map_err(|error| StoreFailure::Unavailable(error.into()))?;
        match &snapshot.failure {
            Some(reason) => Err(StoreFailure::Unavailable(reason.clone().into())),
            None => Ok(read(&snapshot)),
        }
    }

    fn count(&self, failure: &StoreFailure) {
        let [timeout, unavailable, corrupt] = &self.failures;
        let counter = match failure {
            StoreFailure::Timeout => timeout,
            StoreFailure::Corrupt(_) => corrupt,
            _ => unavailable,
        };
        counter.inc();
    }
}

#[async_trait]
impl ApiKeyDirectory for ApiKeySnapshot {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let found = self.read(|snapshot| snapshot.find(&digest)).await.and_then(|found| found);
        found.inspect_err(|failure| self.count(failure))
    }
}

/// Ready while checks succeed.
#[async_trait]
impl Readiness for ApiKeySnapshot {
    async fn check(&self) -> Result<(), NotReady> {
        self.read(|_| ()).await.map_err(|failure| NotReady(failure.into()))
    }
}

impl<S: KeySource> Follower<S> {
    /// Checks the store until the directory is dropped.
    async fn run(mut self) {
        while self.snapshot.receiver_count() > 0 {
            let began = Instant::now();
            self.check(began).await;
            let pause = INTERVAL.saturating_sub(began.elapsed());
            select! {
                () = self.snapshot.closed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    async fn check(&mut self, began: Instant) {
        match self.source.changes(self.known).await {
            Ok(changes) => {
                self.reloads.inc_by(changes.is_some().into());
                self.known = changes.as_ref().map_or(self.known, |changes| Some(changes.version));
                // Both are one change: no lookup trusts older keys for longer.
                self.snapshot.send_modify(|snapshot| {
                    if let Some(changes) = changes {
                        snapshot.apply(changes);
                    }
                    (snapshot.trusted_until, snapshot.failure) = (began + TRUST, None);
                    self.tokens.set(snapshot.tokens.len() as u64);
                });
                if self.outage.succeeded() {
                    tracing::info!(address = self.source.address(), "API keys can be looked up again");
                }
            }
            Err(reason) => {
                let address = self.source.address();
                self.outage.failed(reason.clone(), |reason| {
                    tracing::error!(address, reason, "API keys cannot be read: requests get 503");
                });
                self.snapshot.send_modify(|snapshot| snapshot.failure = Some(reason));
            }
        }
    }
}

impl Snapshot {
    /// Creates a snapshot before the first check: nothing is trusted.
    fn new() -> Self {
        Self { tokens: HashMap::new(), trusted_until: Instant::now(), failure: None }
    }

    fn is_trusted(&self) -> bool {
        Instant::now() < self.trusted_until
    }

    /// Returns the key of a token that has not expired.
    fn find(&self, digest: &ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let Some(Token { key, expires, .. }) = self.tokens.get(digest) else { return Ok(None) };
        if expires.is_some_and(|expires| expires <= SystemTime::now()) {
            return Ok(None);
        }
        key.clone().map(Some).map_err(|reason| StoreFailure::Corrupt(reason.into()))
    }

    fn apply(&mut self, KeyChanges { all, keys, .. }: KeyChanges) {
        let changed: HashSet<_> = keys.iter().map(|key| &key.id).collect();
        self.tokens.retain(|_, token| !all && !changed.contains(&token.id));
        for StoredKey { id, key, tokens } in keys {
            let key = key.map(Arc::new);
            let token = |(digest, expires)| (digest, Token { id: id.clone(), key: key.clone(), expires });
            self.tokens.extend(tokens.into_iter().map(token));
        }
    }
}
