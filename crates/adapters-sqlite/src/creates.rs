//! Creates, by one task and in batches.
//!
//! **Problem.** A commit waits for the disk, SQLite has one writer at a time, and a retry must not add a second pet.
//!
//! **Invariant.** The writer begins a transaction, takes all creates that wait, inserts them in the order in which they
//! came, and commits. A response is sent after the commit, or the outcome is reported as unknown. The record of an
//! idempotency key and its pet are stored by one transaction. A create whose timeout passes in the queue is not stored.
//!
//! **Proof.** `tests/sqlite/group_commit.rs`, `outcomes.rs`, `kills.rs`, `sweep.rs`.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use animal_store_adapter_kit::{
    metrics::QueueMetrics,
    queue::{Pending, Request, Sender, Taker, queue},
};
use animal_store_app::ports::{AddPet, AddedPet, StoreFailure};
use animal_store_domain::Pet;
use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};
use tokio::{
    select,
    task::JoinHandle,
    time::{Instant, interval, sleep, sleep_until},
};

use crate::{
    SqliteFile, SqliteSettings,
    batch::{self, Added},
    error::Problem,
    idempotency::{self, SWEEP_SIZE},
    session::{Session, begin, commit},
};

/// Greatest number of creates in a transaction.
const MAX_BATCH: usize = 1000;

/// Longest pause between two sweeps.
const MAX_SWEEP_PAUSE: Duration = Duration::from_mins(1);

/// Time between two checks that the file is in place.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A transaction that holds the write lock for longer is followed by a pause. Another process tries to take the lock
/// each millisecond, so that an import and a server take turns.
const LONG_TRANSACTION: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_millis(3);

/// A create that waits for the writer.
pub(crate) struct Create(pub(crate) AddPet);

impl Request for Create {
    /// `None`: the idempotency key was used for another pet.
    type Response = Option<AddedPet>;
}

/// The task that writes.
struct Writer {
    session: Session,
    taker: Taker<Create>,
    retention: Duration,
}

/// Starts the writer, on the current runtime. Returns its task as well. When the sender is dropped, the writer empties
/// the queue and ends.
pub(crate) fn start(
    file: &SqliteFile,
    settings: &SqliteSettings,
    metrics: QueueMetrics,
) -> (Sender<Create>, JoinHandle<()>) {
    // After the timeout, a create whose transaction began waits for the disk only.
    let (sender, takers) = queue(settings.max_waiting_creates, Some(settings.timeout), metrics);
    let writer =
        Writer { session: Session::new(file), taker: takers.taker(), retention: settings.idempotency_retention };
    (sender, tokio::spawn(Arc::new(writer).run()))
}

impl Writer {
    /// A panic fails the creates of its batch with an unknown outcome, and closes the connection.
    async fn run(self: Arc<Self>) {
        let sweeps = self.session.file.is_writable();
        let mut next_sweep = Instant::now() + sweep_pause(self.retention);
        let mut checks = interval(CHECK_INTERVAL);
        loop {
            select! {
                is_open = self.taker.ready() => if is_open { self.write().await } else { return },
                () = sleep_until(next_sweep), if sweeps => {
                    // More expired records are deleted after the creates that wait.
                    let pause = if self.sweep().await < SWEEP_SIZE { sweep_pause(self.retention) } else { PAUSE };
                    next_sweep = Instant::now() + pause;
                }
                // It logs and counts by itself.
                _ = checks.tick() => drop(self.session.run(|session| Ok(session.file.check_in_place())).await),
            }
        }
    }

    async fn write(self: &Arc<Self>) {
        let writer = Arc::clone(self);
        let written = self.session.run(move |_| Ok(writer.write_batch())).await;
        if written.is_ok_and(|duration| duration > LONG_TRANSACTION) {
            sleep(PAUSE).await;
        }
    }

    /// Writes the creates that wait, in one transaction. They are taken after the transaction began: a create whose
    /// timeout passes while another process writes is still in the queue. Returns the duration of the transaction.
    fn write_batch(&self) -> Duration {
        let (metrics, mut start, mut batch) = (self.taker.metrics(), Instant::now(), Vec::new());
        let results = self.session.execute(|connection| {
            let began = begin(connection, self.session.file.timeout());
            (start, batch) = (Instant::now(), self.taker.take(MAX_BATCH));
            began?;
            let batch_size = batch.len();
            for pending in &mut batch {
                pending.sent(batch_size, metrics);
            }
            self.store(connection, &batch)
        });
        let duration = start.elapsed();
        metrics.batch_duration.observe(duration.as_secs_f64());
        match results {
            Ok(results) => {
                for (pending, result) in batch.into_iter().zip(results) {
                    let added = |pet, (id, replayed)| AddedPet { pet: Pet::new(id, pet), replayed };
                    pending.respond(metrics, |Create(request)| Ok(result?.map(|result| added(request.pet, result))));
                }
            }
            Err(error) => {
                // If no connection can be opened, none was taken yet.
                batch.append(&mut self.taker.take(MAX_BATCH - batch.len()));
                for pending in batch {
                    pending.respond(metrics, |_| Err(error.failure()));
                }
            }
        }
        duration
    }

    /// Adds pets and commits.
    fn store(
        &self,
        connection: &mut SqliteConnection,
        batch: &[Pending<Create>],
    ) -> Result<Vec<Result<Option<Added>, StoreFailure>>, Problem> {
        if batch.is_empty() {
            connection.batch_execute("ROLLBACK")?;
            return Ok(Vec::new());
        }
        let now = SystemTime::now();
        let add = |pending: &Pending<Create>| batch::add(connection, &pending.request.0, now, self.retention);
        let results = batch.iter().map(add).collect::<QueryResult<_>>()?;
        commit(&self.session.file, connection).map(|()| results)
    }

    /// Returns the number of deleted records.
    async fn sweep(&self) -> usize {
        if self.session.file.check_in_place().is_err() {
            return 0;
        }
        match self.session.change(idempotency::sweep).await {
            Ok(0) => 0,
            Ok(records) => {
                tracing::debug!(records, "idempotency keys were swept");
                records
            }
            Err(error) => {
                tracing::warn!(reason = error.to_string(), "idempotency keys were not swept");
                0
            }
        }
    }
}

fn sweep_pause(retention: Duration) -> Duration {
    MAX_SWEEP_PAUSE.min(retention / 4)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use animal_store_app::test_support::new_pet;
    use diesel::define_sql_function;
    use prometheus_client::registry::Registry;
    use tempfile::TempDir;
    use tokio::{join, runtime::Handle, time::advance};

    use super::*;
    use crate::{FileUse, values::number};

    define_sql_function! {
        /// Advances the clock.
        fn take_long() -> Integer;
    }

    const TIMEOUT: Duration = Duration::from_secs(20);

    fn writer(path: &Path) -> (Sender<Create>, Arc<Writer>) {
        let file = SqliteFile::open(path, FileUse::Create, TIMEOUT).unwrap();
        let [metrics] = QueueMetrics::register(&mut Registry::default(), ["create"]);
        let (sender, takers) = queue(1, None, metrics);
        let (session, taker, retention) = (Session::new(&file), takers.taker(), Duration::from_hours(24));
        (sender, Arc::new(Writer { session, taker, retention }))
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_long_transaction_another_process_has_time_for_two_attempts_to_take_the_lock() {
        let folder = TempDir::new().unwrap();
        let (sender, writer) = writer(&folder.path().join("pets.db"));
        let write = async || {
            let start = Instant::now();
            let create = Create(AddPet { pet: new_pet(), idempotency_key: None });
            let (added, ()) = join!(sender.send(create, TIMEOUT), writer.write());
            assert!(added.unwrap().is_some());
            start.elapsed()
        };
        assert_eq!(write().await, Duration::ZERO);

        let trigger = "CREATE TEMP TRIGGER long AFTER INSERT ON pets BEGIN SELECT take_long(); END";
        let prepare = |connection: &mut SqliteConnection| {
            take_long_utils::register_impl(connection, || {
                Handle::current().block_on(advance(LONG_TRANSACTION * 2));
                0
            })?;
            Ok(connection.batch_execute(trigger)?)
        };
        writer.session.execute(prepare).unwrap();
        let pause = write().await - LONG_TRANSACTION * 2;
        // Shorter than the transaction by far: the other process does not delay creates more than necessary.
        assert!((Duration::from_millis(2)..LONG_TRANSACTION / 2).contains(&pause), "{pause:?}");
    }

    #[tokio::test]
    async fn while_the_file_is_moved_a_sweep_deletes_nothing() {
        let folder = TempDir::new().unwrap();
        let (path, moved) = (folder.path().join("pets.db"), folder.path().join("moved.db"));
        let (_sender, writer) = writer(&path);
        let mut connection = writer.session.file.connect().unwrap();
        connection.batch_execute("INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1)").unwrap();
        for (from, to, deleted, rows) in [(&path, &moved, 0, 1), (&moved, &path, 1, 0)] {
            std::fs::rename(from, to).unwrap();
            assert_eq!(writer.sweep().await, deleted);
            assert_eq!(number(&mut connection, "SELECT count(*) FROM idempotency_keys").unwrap(), rows);
        }
    }

    #[test]
    fn sweeps_come_four_times_in_a_retention_and_once_a_minute_at_least() {
        assert_eq!(sweep_pause(Duration::from_secs(20)), Duration::from_secs(5));
        assert_eq!(sweep_pause(Duration::from_hours(24)), Duration::from_mins(1));
    }
}
