use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use animal_store_app::ports::AddPet;
use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};
use tokio::sync::mpsc;

use super::{
    add::{AddResult, BatchError, Write},
    batch::Batch,
    sweep,
};
use crate::{
    SqliteFile, SqliteFileError, SqliteSettings,
    change::begin,
    concurrency::Instant,
    error::{FULL, storage_error},
    file::FileConnection,
    metrics::Metrics,
    queue::{Queue, Wakeup},
};

/// Greatest number of creates in a transaction.
const MAX_BATCH: usize = 1000;

/// Longest pause between two sweeps.
const MAX_SWEEP_PAUSE: Duration = Duration::from_mins(1);

/// Time between two checks that the file is in place, if there is nothing to write.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A transaction that holds the write lock for longer is followed by a pause. Another process tries to take the lock
/// each millisecond, so that an import and a server take turns.
const LONG_TRANSACTION: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_millis(3);

/// Longer than any process runs.
const NEVER: Duration = Duration::from_hours(100 * 366 * 24);

/// The thread that writes, with its own connection.
pub(super) struct Writer {
    file: SqliteFile,
    connection: Option<FileConnection>,
    queue: Arc<Queue<Write>>,
    metrics: Arc<Metrics>,
    retention: Duration,
    next_sweep: Instant,
}

impl Writer {
    /// Starts the thread. It holds `running` until it ends.
    pub(super) fn start(
        file: &SqliteFile,
        settings: &SqliteSettings,
        queue: Arc<Queue<Write>>,
        metrics: Arc<Metrics>,
        running: mpsc::Sender<()>,
    ) -> Result<(), SqliteFileError> {
        let (connection, retention) = (Some(file.connect()?), settings.idempotency_retention);
        let next_sweep = Instant::now() + if file.is_writable() { sweep_pause(retention) } else { NEVER };
        let mut writer = Self { file: file.clone(), connection, queue, metrics, retention, next_sweep };
        let run = move || {
            loop {
                let wakeup = writer.queue.wait(writer.next_sweep.min(Instant::now() + CHECK_INTERVAL));
                // A panic must not end the thread. It drops the channels, so the clients get an error.
                let work = catch_unwind(AssertUnwindSafe(|| {
                    if wakeup == Wakeup::Request && !writer.write() {
                        writer.connection = None;
                    }
                    if wakeup == Wakeup::Deadline {
                        // It logs and counts by itself.
                        let _ = writer.file.check_in_place();
                    }
                    if wakeup != Wakeup::Closed && Instant::now() >= writer.next_sweep {
                        writer.sweep();
                    }
                }));
                if work.is_err() {
                    writer.connection = None;
                }
                if wakeup == Wakeup::Closed {
                    break;
                }
            }
            drop(writer);
            drop(running);
        };
        let spawned = thread::Builder::new().name("sqlite-writer".to_owned()).spawn(run);
        spawned.map(drop).map_err(|error| file.unavailable(&error))
    }

    /// Writes the requests that wait, in one transaction. They are taken after the transaction began: a request whose
    /// timeout passes while another process writes is still in the queue. Returns whether the connection can be used
    /// again.
    fn write(&mut self) -> bool {
        let timeout = self.file.timeout();
        let began =
            self.connection().and_then(|connection| begin(connection, timeout).map_err(|error| error.to_string()));
        let start = Instant::now();
        let (mut adds, mut senders) = (Vec::new(), Vec::new());
        for request in self.queue.take(MAX_BATCH) {
            match request {
                Write::Add { request, sender } => {
                    adds.push(request);
                    senders.push(sender);
                }
                // The client may have disconnected.
                Write::Check { sender } => {
                    let began = began.clone().map_err(|message| storage_error(&message));
                    let _ = sender.send(began.and_then(|()| Ok(self.file.check_in_place()?)));
                }
            }
        }
        let results = began.map_err(BatchError::NotStored).and_then(|()| self.store(adds));
        let was_long = start.elapsed() > LONG_TRANSACTION;
        let is_usable = results.is_ok();
        match results {
            Ok(results) => {
                for (sender, result) in senders.into_iter().zip(results) {
                    // The client may have disconnected.
                    let _ = sender.send(result);
                }
            }
            Err(error) => {
                for sender in senders {
                    let _ = sender.send(Err(error.clone().into()));
                }
            }
        }
        if was_long {
            give_way();
        }
        is_usable
    }

    /// Adds pets and commits.
    fn store(&mut self, adds: Vec<AddPet>) -> Result<Vec<AddResult>, BatchError> {
        let retention = self.retention;
        let not_stored = |error: diesel::result::Error| BatchError::NotStored(error.to_string());
        let connection = self.connection().map_err(BatchError::NotStored)?;
        if adds.is_empty() {
            return connection.batch_execute("ROLLBACK").map(|()| Vec::new()).map_err(not_stored);
        }
        let size = adds.len();
        let mut batch = Batch::new(connection, retention);
        let results = adds.into_iter().map(|add| batch.add(add)).collect::<QueryResult<_>>().map_err(not_stored)?;
        self.file.check_in_place().map_err(|error| BatchError::NotStored(error.to_string()))?;
        let start = Instant::now();
        let committed = commit(self.connection().map_err(BatchError::NotStored)?);
        self.metrics.batch_size.observe(u32::try_from(size).unwrap_or(u32::MAX).into());
        self.metrics.commit_duration.observe(start.elapsed().as_secs_f64());
        committed?;
        self.metrics.commits.inc();
        Ok(results)
    }

    fn sweep(&mut self) {
        // Before anything can panic.
        self.next_sweep = Instant::now() + sweep_pause(self.retention);
        if self.file.check_in_place().is_err() {
            return;
        }
        let file = self.file.clone();
        let swept =
            self.connection().and_then(|connection| sweep::sweep(&file, connection).map_err(|error| error.to_string()));
        match swept {
            // There may be more: they come after the creates that wait.
            Ok(sweep::BATCH_SIZE) => self.next_sweep = Instant::now(),
            Ok(_) => {}
            Err(reason) => {
                tracing::warn!(file = %self.file.path().display(), reason, "idempotency keys were not swept");
                self.connection = None;
                return;
            }
        }
        let records = swept.unwrap_or_default();
        self.metrics.swept_keys.inc_by(records as u64);
        if records > 0 {
            tracing::debug!(records, "idempotency keys were swept");
        }
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, String> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.file.connect().map_err(|error| error.to_string())?),
        };
        Ok(connection)
    }
}

fn commit(connection: &mut SqliteConnection) -> Result<(), BatchError> {
    connection.batch_execute("COMMIT").map_err(|error| commit_error(error.to_string()))
}

/// Classifies a failure of a commit. A full disk has refused a part of the commit before its end, so SQLite ignores it.
/// After another failure, such as one of fsync, the commit may be complete in the log: this process does not see it,
/// and a process that starts after a crash would.
fn commit_error(message: String) -> BatchError {
    if message.contains(FULL) { BatchError::NotStored(message) } else { BatchError::OutcomeUnknown(message) }
}

#[expect(clippy::disallowed_methods, reason = "nothing signals that another process waits for the lock")]
fn give_way() {
    thread::sleep(PAUSE);
}

fn sweep_pause(retention: Duration) -> Duration {
    MAX_SWEEP_PAUSE.min(retention / 4)
}

#[cfg(test)]
mod tests {
    use animal_store_app::ports::AddPetError;
    use prometheus_client::registry::Registry;
    use tempfile::TempDir;

    use super::*;
    use crate::scalar::number;

    #[test]
    fn while_the_file_is_moved_a_sweep_deletes_nothing_and_the_next_one_comes_later() {
        let folder = TempDir::new().unwrap();
        let (path, moved) = (folder.path().join("pets.db"), folder.path().join("moved.db"));
        let file = SqliteFile::create_or_migrate(&path, Duration::from_secs(20)).unwrap();
        let mut connection = file.connect().unwrap();
        connection.batch_execute("INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1)").unwrap();
        let metrics = Arc::new(Metrics::new(&mut Registry::default()));
        let queue = Arc::new(Queue::new(1, metrics.creates.clone()));
        let (retention, next_sweep) = (Duration::from_hours(24), Instant::now());
        let connection = Some(connection);
        let mut writer = Writer { file, connection, queue, metrics, retention, next_sweep };
        for (from, to, rows) in [(&path, &moved, 1), (&moved, &path, 0)] {
            std::fs::rename(from, to).unwrap();
            writer.next_sweep = next_sweep;
            writer.sweep();
            assert!(writer.next_sweep > next_sweep);
            let connection = writer.connection.as_mut().unwrap();
            assert_eq!(number(connection, "SELECT count(*) FROM idempotency_keys").unwrap(), rows);
        }
    }

    #[test]
    fn sweeps_come_four_times_in_a_retention_and_once_a_minute_at_least() {
        assert_eq!(sweep_pause(Duration::from_secs(20)), Duration::from_secs(5));
        assert_eq!(sweep_pause(Duration::from_hours(24)), Duration::from_mins(1));
    }

    #[test]
    fn only_a_full_disk_leaves_no_doubt_about_a_commit() {
        let error = |message: &str| AddPetError::from(commit_error(message.to_owned()));
        assert!(matches!(error("database or disk is full"), AddPetError::Store(_)));
        assert!(matches!(error("disk I/O error"), AddPetError::Store(StoreFailure::OutcomeUnknown(_))));
    }
}
