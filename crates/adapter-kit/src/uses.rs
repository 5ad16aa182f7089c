//! Uses of API keys, recorded for `animal-store keys list`.
//!
//! **Problem.** A write for each request would cost more than the request, and would fail with the store. Threads that
//! note uses in the same memory slow each other down.
//!
//! **Invariant.** Each thread notes uses in memory of its own. In each interval, and once more after the last clone of
//! the record is dropped, the writer writes all uses in one batch. After a failed write, they stay pending for the next
//! one, up to a bound, and each reason is logged once.
//!
//! **Proof.** `tests.rs`; the contract suite `api_key_uses` of each adapter.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    convert::Infallible,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use animal_store_app::{
    ApiKeyId, milliseconds,
    ports::{ApiKeyUse, ApiKeyUses},
};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use thread_local::ThreadLocal;
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
    time::timeout,
};

use crate::{Outage, metrics::counters};

/// Uses of API keys that are not written yet.
#[derive(Debug, Clone, Default)]
#[repr(align(128))] // no two in a cache line
pub struct PendingUses {
    /// The keys of each kind, with the times of their last uses in seconds since 1970.
    times: [HashMap<ApiKeyId, i64>; ApiKeyUse::ALL.len()],
    /// Number of uses beyond the bound.
    dropped: u64,
}

/// The uses that each thread noted since the last write. The next write sets their times.
type Notes = Arc<ThreadLocal<Mutex<PendingUses>>>;

/// A store of uses.
pub trait UseStore: Send + Sync + 'static {
    /// Returns the address of the store, for the log.
    fn address(&self) -> String;

    /// Writes uses. No time moves backwards. `now`: the beginning of the record, if it has none, in seconds since 1970.
    ///
    /// # Errors
    /// The reason why they were not written.
    fn write(
        &self,
        uses: &PendingUses,
        now: i64,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// Records uses of API keys. A task of the runtime writes what its clones note.
#[derive(Debug, Clone)]
pub struct ApiKeyUseRecord {
    notes: Notes,
    max_keys: usize,
    /// The writer ends after the last one is dropped.
    _open: Sender<Infallible>,
}

impl ApiKeyUseRecord {
    /// Time between two writes.
    pub const INTERVAL: Duration = Duration::from_mins(1);
    /// Maximum number of keys of each kind, which bounds the memory if writes fail.
    pub const MAX_KEYS: usize = 100_000;

    /// Starts the writer, which writes once in an interval, and registers its metrics. `max_keys`: maximum number of
    /// keys of each kind that a thread notes, and that are not written yet. The handle resolves after the last clone of
    /// this value is dropped, and the last uses are written or have failed.
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
        let help =
            "Batches of last uses of API keys that were written to their store: written or failed";
        let results = counters(
            registry,
            "use_writes",
            help,
            "result",
            ["written", "failed"],
        );
        let (open, closed) = channel(1);
        let record = Self {
            notes: Notes::default(),
            max_keys,
            _open: open,
        };
        let writer = write_periodically(
            store,
            Arc::clone(&record.notes),
            max_keys,
            closed,
            interval,
            results,
        );
        (record, tokio::spawn(writer))
    }
}

impl ApiKeyUses for ApiKeyUseRecord {
    fn note(&self, id: &ApiKeyId, kind: ApiKeyUse) {
        // A panic under the lock leaves no partial change.
        let mut note = self
            .notes
            .get_or_default()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        note.insert(id, kind, 0, self.max_keys);
    }
}

/// Writes all uses that are noted, and those of writes that failed.
async fn write_periodically(
    store: impl UseStore,
    notes: Notes,
    max_keys: usize,
    mut closed: Receiver<Infallible>,
    interval: Duration,
    [written, failed]: [Counter; 2],
) {
    let mut pending = PendingUses::default();
    let mut outage = Outage::default();
    let mut is_open = true;
    while is_open {
        is_open = timeout(interval, closed.recv()).await.is_err();
        let now = this_minute();
        for note in notes.iter() {
            let uses = mem::take(&mut *note.lock().unwrap_or_else(PoisonError::into_inner));
            pending.dropped += uses.dropped;
            for (kind, times) in uses.iter() {
                for id in times.keys() {
                    pending.insert(id, kind, now, max_keys);
                }
            }
        }
        let dropped = mem::take(&mut pending.dropped);
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "uses of API keys were not recorded: too many keys are used"
            );
        }
        if pending.iter().all(|(_, times)| times.is_empty()) {
            continue;
        }
        let address = store.address();
        match store.write(&pending, now).await {
            Ok(()) => {
                written.inc();
                pending = PendingUses::default();
                if outage.succeeded() {
                    tracing::info!(address, "the last uses of API keys are written again");
                }
            }
            Err(reason) => {
                failed.inc();
                outage.failed(reason, |reason| {
                    let effect = "the last uses of API keys cannot be written: `keys list` does not show them";
                    tracing::warn!(address, reason, "{effect}");
                });
            }
        }
    }
}

impl PendingUses {
    fn insert(&mut self, id: &ApiKeyId, kind: ApiKeyUse, now: i64, max_keys: usize) {
        let times = &mut self.times[kind as usize];
        if let Some(time) = times.get_mut(id) {
            *time = now;
        } else if times.len() < max_keys {
            times.insert(id.clone(), now);
        } else {
            self.dropped += 1;
        }
    }

    /// Iterates over the kinds, each with the keys that were used and the times in seconds since 1970.
    pub fn iter(&self) -> impl Iterator<Item = (ApiKeyUse, &HashMap<ApiKeyId, i64>)> {
        ApiKeyUse::ALL.into_iter().zip(&self.times)
    }
}

/// Returns the current minute, in seconds since 1970.
fn this_minute() -> i64 {
    milliseconds(SystemTime::now()) / 60_000 * 60
}
