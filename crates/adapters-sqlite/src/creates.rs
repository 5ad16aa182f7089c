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

use animal_store_adapter_kit::queue::{Pending, Request, Sender, Taker, queue};
use animal_store_app::ports::{AddPet, AddPetError, AddedPet, StoreFailure};
use animal_store_domain::Pet;
use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};
use tokio::{
    select,
    task::JoinHandle,
    time::{Instant, interval, sleep, sleep_until},
};

use crate::{
    SqliteFile, SqliteSettings,
    access::{AccessError, Session, begin, commit},
    batch::{Added, Batch, SWEEP_SIZE, sweep},
    metrics::Metrics,
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

/// Sends creates to the writer. When it is dropped, the writer empties the queue and ends.
pub(crate) struct Creates {
    queue: Sender<Create>,
    timeout: Duration,
    metrics: Arc<Metrics>,
}

struct Create(AddPet);

impl Request for Create {
    type Response = Result<AddedPet, AddPetError>;
}

/// The task that writes.
struct Writer {
    session: Session,
    taker: Taker<Create>,
    metrics: Arc<Metrics>,
    retention: Duration,
}

impl Creates {
    /// Starts the writer, on the current runtime. Returns its task as well.
    pub(crate) fn start(
        file: &SqliteFile,
        settings: &SqliteSettings,
        metrics: &Arc<Metrics>,
    ) -> (Self, JoinHandle<()>) {
        let (queue, taker) = queue(settings.max_waiting_creates, metrics.creates.clone());
        let (metrics, retention) = (Arc::clone(metrics), settings.idempotency_retention);
        let writer = Writer { session: Session::new(file), taker, metrics: Arc::clone(&metrics), retention };
        (Self { queue, timeout: settings.timeout, metrics }, tokio::spawn(writer.run()))
    }

    pub(crate) async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        // After the timeout, a create whose transaction began waits for the disk only.
        let sent = self.queue.send(Create(request), self.timeout, Some(self.timeout)).await;
        let result = sent.unwrap_or_else(|failure| {
            self.metrics.create_timeouts.inc_by(matches!(failure, StoreFailure::Timeout).into());
            Err(failure.into())
        });
        if matches!(result, Err(AddPetError::Store(StoreFailure::OutcomeUnknown(_)))) {
            self.metrics.unknown_outcomes.inc();
        }
        result
    }
}

impl Writer {
    /// A panic fails the creates of its batch with an unknown outcome, and closes the connection.
    async fn run(mut self) {
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
                _ = checks.tick() => drop(self.session.run(|session| session.file.check_in_place()).await),
            }
        }
    }

    async fn write(&mut self) {
        let (taker, metrics, retention) = (self.taker.clone(), Arc::clone(&self.metrics), self.retention);
        let written = self.session.run(move |session| write(session, &taker, &metrics, retention)).await;
        if written.is_ok_and(|duration| duration > LONG_TRANSACTION) {
            sleep(PAUSE).await;
        }
    }

    /// Returns the number of deleted records.
    async fn sweep(&mut self) -> usize {
        let file = self.session.file.clone();
        if file.check_in_place().is_err() {
            return 0;
        }
        let records = match self.session.change(sweep).await {
            Ok(records) => records,
            Err(error) => {
                let (file, reason) = (file.path().display(), error.to_string());
                tracing::warn!(%file, reason, "idempotency keys were not swept");
                return 0;
            }
        };
        self.metrics.swept_keys.inc_by(records as u64);
        if records > 0 {
            tracing::debug!(records, "idempotency keys were swept");
        }
        records
    }
}

/// Writes the creates that wait, in one transaction. They are taken after the transaction began: a create whose timeout
/// passes while another process writes is still in the queue. Returns the duration of the transaction.
fn write(session: &mut Session, taker: &Taker<Create>, metrics: &Metrics, retention: Duration) -> Duration {
    let file = session.file.clone();
    let (mut start, mut batch) = (Instant::now(), Vec::new());
    let results = session.execute(|connection| {
        let began = begin(connection, file.timeout());
        (start, batch) = (Instant::now(), taker.take(MAX_BATCH));
        began?;
        let batch_size = batch.len();
        for pending in &mut batch {
            pending.sent(batch_size, &metrics.creates);
        }
        store(&file, connection, &batch, metrics, retention)
    });
    match results {
        Ok(results) => {
            for (pending, result) in batch.into_iter().zip(results) {
                let added = |pet, (id, replayed)| AddedPet { pet: Pet::new(id, pet), replayed };
                pending.respond(|Create(request)| result.map(|result| added(request.pet, result)));
            }
        }
        Err(error) => {
            // If no connection can be opened, none was taken yet.
            batch.append(&mut taker.take(MAX_BATCH - batch.len()));
            for pending in batch {
                pending.respond(|_| Err(error.failure(file.path()).into()));
            }
        }
    }
    start.elapsed()
}

/// Adds pets and commits.
fn store(
    file: &SqliteFile,
    connection: &mut SqliteConnection,
    batch: &[Pending<Create>],
    metrics: &Metrics,
    retention: Duration,
) -> Result<Vec<Result<Added, AddPetError>>, AccessError> {
    if batch.is_empty() {
        connection.batch_execute("ROLLBACK")?;
        return Ok(Vec::new());
    }
    let mut inserts = Batch { connection, now: SystemTime::now(), retention };
    let results = batch.iter().map(|pending| inserts.add(&pending.request.0)).collect::<QueryResult<_>>()?;
    let start = Instant::now();
    let committed = commit(file, connection);
    metrics.batch_size.observe(u32::try_from(batch.len()).unwrap_or(u32::MAX).into());
    metrics.commit_duration.observe(start.elapsed().as_secs_f64());
    committed?;
    metrics.commits.inc();
    Ok(results)
}

fn sweep_pause(retention: Duration) -> Duration {
    MAX_SWEEP_PAUSE.min(retention / 4)
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;
    use tempfile::TempDir;

    use super::*;
    use crate::values::number;

    #[tokio::test]
    async fn while_the_file_is_moved_a_sweep_deletes_nothing() {
        let folder = TempDir::new().unwrap();
        let (path, moved) = (folder.path().join("pets.db"), folder.path().join("moved.db"));
        let file = SqliteFile::create_or_migrate(&path, Duration::from_secs(20)).unwrap();
        let mut connection = file.connect().unwrap();
        connection.batch_execute("INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1)").unwrap();
        let metrics = Arc::new(Metrics::new(&mut Registry::default()));
        let (_sender, taker) = queue(1, metrics.creates.clone());
        let session = Session::new(&file);
        let mut writer = Writer { session, taker, metrics, retention: Duration::from_hours(24) };
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
