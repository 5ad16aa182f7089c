use std::{
    mem,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_app::{
    ApiKeyId, NotedUses, PendingUses,
    ports::{ApiKeyUse, ApiKeyUses},
};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::{
    select,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{error::KeyError, metrics::register_series, use_rows};
use crate::{
    SqliteFile,
    change::{change, run_blocking},
};

/// Time between two writes.
const INTERVAL: Duration = Duration::from_mins(1);
/// Maximum number of keys of each kind in a recorder. It bounds the memory if writes fail.
const MAX_KEYS: usize = 100_000;

/// Records uses of API keys in the file. A task of the runtime writes what the recorders note.
#[derive(Clone)]
pub struct SqliteApiKeyUses {
    registration: UnboundedSender<Arc<NotedUses>>,
}

/// Notes the uses of API keys in one worker.
pub struct SqliteUseRecorder {
    noted: Arc<NotedUses>,
    /// The writer ends after all recorders are dropped.
    _registration: UnboundedSender<Arc<NotedUses>>,
}

struct Writer {
    file: SqliteFile,
    recorders: Vec<Arc<NotedUses>>,
    pending: PendingUses,
    written: Counter,
    failed: Counter,
    /// Whether the last write failed.
    failing: bool,
}

impl SqliteApiKeyUses {
    /// Starts the writer, and registers its metrics. The handle resolves after the last recorder and the last clone of
    /// this value are dropped, and the last uses are written or have failed.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(file: &SqliteFile, registry: &mut Registry) -> (Self, JoinHandle<()>) {
        Self::start_with_interval(file, INTERVAL, registry)
    }

    /// Like [`Self::start`], with this time between two writes.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_with_interval(
        file: &SqliteFile,
        interval: Duration,
        registry: &mut Registry,
    ) -> (Self, JoinHandle<()>) {
        let registry = registry.sub_registry_with_prefix("keys");
        let help = "Batches of last uses of API keys that were written to the file: written or failed";
        let [written, failed] = register_series(registry, "use_writes", help, "result", ["written", "failed"]);
        let (recorders, pending) = (Vec::new(), PendingUses::new(MAX_KEYS));
        let writer = Writer { file: file.clone(), recorders, pending, written, failed, failing: false };
        let (registration, registrations) = unbounded_channel();
        let task = tokio::spawn(writer.run(registrations, interval));
        (Self { registration }, task)
    }

    /// Creates the recorder of one worker.
    pub fn recorder(&self) -> SqliteUseRecorder {
        let (noted, registration) = (Arc::new(NotedUses::new(MAX_KEYS)), self.registration.clone());
        // Fails if the writer has ended, and then nothing is recorded.
        let _ = registration.send(Arc::clone(&noted));
        SqliteUseRecorder { noted, _registration: registration }
    }
}

impl ApiKeyUses for SqliteUseRecorder {
    fn note(&self, id: &ApiKeyId, kind: ApiKeyUse) {
        self.noted.note(id, kind);
    }
}

impl Writer {
    async fn run(mut self, mut registrations: UnboundedReceiver<Arc<NotedUses>>, interval: Duration) {
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

    /// Writes all uses that are noted or pending. If that fails, they stay pending.
    async fn write(&mut self) {
        let now = this_minute();
        // More keys than the bound exist only if some are revoked while writes fail.
        self.pending.collect(&self.recorders, now);
        if self.pending.is_empty() {
            return;
        }
        let (file, pending) = (self.file.clone(), self.pending.clone());
        let written = run_blocking(move || -> Result<(), KeyError> {
            change(&file, &mut *file.connect()?, |connection| use_rows::write(connection, &pending, now))
        });
        let file = self.file.path().display();
        match written.await {
            Ok(()) => {
                self.written.inc();
                self.pending.clear();
                if mem::take(&mut self.failing) {
                    tracing::info!(%file, "the last uses of API keys are written again");
                }
            }
            Err(error) => {
                self.failed.inc();
                if !mem::replace(&mut self.failing, true) {
                    let reason = error.to_string();
                    tracing::warn!(%file, reason, "the last uses of API keys cannot be written");
                }
            }
        }
    }
}

/// Returns the current minute, in seconds since 1970.
fn this_minute() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    now - now % 60
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use tempfile::TempDir;

    use super::*;
    use crate::problems::Problems;

    #[tokio::test]
    async fn writes_that_fail_are_logged_once() {
        let folder = TempDir::new().unwrap();
        let file = SqliteFile::create_or_migrate(&folder.path().join("keys.db"), Duration::from_secs(20)).unwrap();
        file.connect().unwrap().batch_execute("DROP TABLE api_key_uses").unwrap();
        let noted = NotedUses::new(1);
        noted.note(&ApiKeyId::new("key"), ApiKeyUse::Request);
        let (recorders, pending) = (vec![Arc::new(noted)], PendingUses::new(1));
        let (written, failed) = (Counter::default(), Counter::default());
        let mut writer = Writer { file, recorders, pending, written, failed, failing: false };
        let (problems, _guard) = Problems::start();
        for _ in 0..3 {
            writer.write().await;
        }
        assert_eq!((writer.failed.get(), problems.count()), (3, 1));
    }
}
