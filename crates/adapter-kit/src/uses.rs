//! Uses of API keys, recorded for `animal-store keys list`.
//!
//! **Problem.** A write for each request would cost more than the request, and would fail with the store. A lock that all
//! workers share would slow them down.
//!
//! **Invariant.** Each worker has a recorder with a lock of its own, which otherwise only the writer takes, once in an
//! interval. In each interval, and once more after the last recorder is dropped, the writer writes the notes of
//! all workers in one batch. After a failed write, the uses stay pending for the next one, up to a bound, and the
//! failure is logged once.
//!
//! **Proof.** `tests.rs`; the contract suite `api_key_uses` of each adapter.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_app::{
    ApiKeyId,
    ports::{ApiKeyUse, ApiKeyUses},
};
use async_trait::async_trait;
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::{
    select,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::metrics::counters;

/// Uses of API keys that are not written yet, of a worker or of all.
#[derive(Debug, Clone)]
pub struct PendingUses {
    /// The keys of each kind, with the times of their last uses in seconds since 1970.
    times: [HashMap<ApiKeyId, u64>; ApiKeyUse::ALL.len()],
    max_keys: usize,
    /// Number of uses beyond the bound.
    dropped: u64,
}

/// The uses that a worker noted since the last write. Their times are those of the write.
type Notes = Arc<Mutex<PendingUses>>;

/// A store of uses.
#[async_trait]
pub trait UseStore: Send + Sync + 'static {
    /// Returns the address of the store, for the log.
    fn address(&self) -> String;

    /// Writes uses. No time moves backwards. `now`: the beginning of the record, if it has none, in seconds since 1970.
    ///
    /// # Errors
    /// The reason why they were not written.
    async fn write(&self, uses: &PendingUses, now: u64) -> Result<(), String>;
}

/// Records uses of API keys. A task of the runtime writes what the recorders note.
#[derive(Debug, Clone)]
pub struct ApiKeyUseRecord {
    registration: UnboundedSender<Notes>,
    max_keys: usize,
}

/// Notes the uses of API keys in one worker.
#[derive(Debug)]
pub struct ApiKeyUseRecorder {
    notes: Notes,
    /// The writer ends after all recorders are dropped.
    _registration: UnboundedSender<Notes>,
}

struct Writer<S> {
    store: S,
    recorders: Vec<Notes>,
    /// Uses that are not written yet.
    pending: PendingUses,
    written: Counter,
    failed: Counter,
    /// Whether the last write failed.
    failing: bool,
    /// Whether uses were dropped before the last write.
    overflowing: bool,
}

impl ApiKeyUseRecord {
    /// Starts the writer, which writes once in an interval, and registers its metrics. `max_keys`: maximum number of
    /// keys of each kind in a recorder, and in the writer. The handle resolves after the last recorder and the last
    /// clone of this value are dropped, and the last uses are written or have failed.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        store: impl UseStore,
        max_keys: usize,
        interval: Duration,
        registry: &mut Registry,
    ) -> (Self, JoinHandle<()>) {
        let registry = registry.sub_registry_with_prefix("keys");
        let help = "Batches of last uses of API keys that were written to their store: written or failed";
        let [written, failed] = counters(registry, "use_writes", help, "result", ["written", "failed"]);
        let (recorders, pending) = (Vec::new(), PendingUses::new(max_keys));
        let writer = Writer { store, recorders, pending, written, failed, failing: false, overflowing: false };
        let (registration, registrations) = unbounded_channel();
        let task = tokio::spawn(writer.run(registrations, interval));
        (Self { registration, max_keys }, task)
    }

    /// Creates the recorder of one worker.
    pub fn recorder(&self) -> ApiKeyUseRecorder {
        let notes = Arc::new(Mutex::new(PendingUses::new(self.max_keys)));
        // Fails if the writer has ended, and then nothing is recorded.
        let _ = self.registration.send(Arc::clone(&notes));
        ApiKeyUseRecorder { notes, _registration: self.registration.clone() }
    }
}

impl ApiKeyUses for ApiKeyUseRecorder {
    fn note(&self, id: &ApiKeyId, kind: ApiKeyUse) {
        lock(&self.notes).insert(id, kind, 0);
    }
}

impl<S: UseStore> Writer<S> {
    async fn run(mut self, mut registrations: UnboundedReceiver<Notes>, interval: Duration) {
        let mut ticks = interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            select! {
                registration = registrations.recv() => match registration {
                    Some(recorder) => self.recorders.push(recorder),
                    None => return self.write().await,
                },
                _ = ticks.tick() => self.write().await,
            }
        }
    }

    /// Takes the notes of all workers. Returns the number of uses beyond the bounds, which are dropped.
    fn collect(&mut self, now: u64) -> u64 {
        for recorder in &self.recorders {
            let noted = lock(recorder).take();
            self.pending.dropped += noted.dropped;
            for (kind, times) in noted.iter() {
                for id in times.keys() {
                    self.pending.insert(id, kind, now);
                }
            }
        }
        mem::take(&mut self.pending.dropped)
    }

    /// Writes all uses that are noted or pending. If that fails, they stay pending.
    async fn write(&mut self) {
        let now = this_minute();
        let dropped = self.collect(now);
        if dropped > 0 && !self.overflowing {
            tracing::warn!(dropped, "uses of API keys were not recorded: too many keys are used");
        }
        self.overflowing = dropped > 0;
        if self.pending.iter().all(|(_, times)| times.is_empty()) {
            return;
        }
        let (address, result) = (self.store.address(), self.store.write(&self.pending, now).await);
        match result {
            Ok(()) => {
                self.written.inc();
                self.pending.take();
                if mem::take(&mut self.failing) {
                    tracing::info!(address, "the last uses of API keys are written again");
                }
            }
            Err(reason) => {
                self.failed.inc();
                if !mem::replace(&mut self.failing, true) {
                    tracing::warn!(
                        address,
                        reason,
                        "the last uses of API keys cannot be written: `keys list` does not show them"
                    );
                }
            }
        }
    }
}

impl PendingUses {
    fn new(max_keys: usize) -> Self {
        Self { times: Default::default(), max_keys, dropped: 0 }
    }

    fn insert(&mut self, id: &ApiKeyId, kind: ApiKeyUse, now: u64) {
        let times = &mut self.times[kind as usize];
        if let Some(time) = times.get_mut(id) {
            *time = now;
        } else if times.len() < self.max_keys {
            times.insert(id.clone(), now);
        } else {
            self.dropped += 1;
        }
    }

    fn take(&mut self) -> Self {
        let empty = Self::new(self.max_keys);
        mem::replace(self, empty)
    }

    /// Iterates over the kinds, each with the keys that were used and the times in seconds since 1970.
    pub fn iter(&self) -> impl Iterator<Item = (ApiKeyUse, &HashMap<ApiKeyId, u64>)> {
        ApiKeyUse::ALL.into_iter().zip(&self.times)
    }
}

fn lock(notes: &Notes) -> MutexGuard<'_, PendingUses> {
    // A panic under the lock leaves no partial change.
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the current minute, in seconds since 1970.
fn this_minute() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    now - now % 60
}
