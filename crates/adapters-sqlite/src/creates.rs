//! Creates, by one task and in batches.
//!
//! **Problem.** A commit waits for the disk, SQLite has one writer at a time, and a retry must not add a second pet.
//!
//! **Invariant.** The writer begins a transaction, takes all creates that wait, inserts them in the order in which they
//! came, and commits. A response is sent after the commit, or the outcome is reported as unknown. The record of an
//! idempotency key and its pet are stored by one transaction. A create whose timeout passes in the queue is not stored.
//!
//! **Proof.** `tests/sqlite/group_commit.rs`, `outcomes.rs`, `kills.rs`, `sweep.rs`; `tests.rs` (pauses).

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use animal_store_adapter_kit::{
    metrics::QueueMetrics,
    queue::{Pending, Request, Sender, Taker, queue},
};
use animal_store_app::ports::{AddPet, AddedPet, StoreFailure};
use animal_store_domain::Pet;
use diesel::{SqliteConnection, connection::SimpleConnection};
use tokio::{
    select,
    task::JoinHandle,
    time::{Instant, interval, sleep, sleep_until},
};

use crate::{
    SqliteFile, SqliteSettings,
    batch::{self, Added},
    error::Problem,
    file::Disk,
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
    let (sender, takers) = queue(
        settings.max_waiting_creates,
        Some(settings.timeout),
        metrics,
    );
    let writer = Writer {
        session: Session::new(file),
        taker: takers.taker(),
        retention: settings.idempotency_retention,
    };
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
                    let added = |pet, (id, replayed)| AddedPet {
                        pet: Pet::new(id, pet),
                        replayed,
                    };
                    pending.respond(metrics, |Create(request)| {
                        Ok(result?.map(|result| added(request.pet, result)))
                    });
                }
            }
            Err(error) => {
                // If no connection can be opened, none was taken yet.
                if batch.is_empty() {
                    batch = self.taker.take(MAX_BATCH);
                }
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
        Disk::check(self.session.file.path(), 0)?;
        let requests: Vec<_> = batch.iter().map(|pending| &pending.request.0).collect();
        let timeout = self.session.file.timeout();
        let results = batch::add_all(connection, &requests, self.retention, timeout)?;
        commit(&self.session.file, connection).map(|()| results)
    }

    /// Returns the number of deleted records.
    async fn sweep(&self) -> usize {
        let file = &self.session.file;
        // In the log, the deletions need space.
        if file.check_in_place().is_err() || Disk::check(file.path(), 0).is_err() {
            return 0;
        }
        let retention = self.retention;
        let sweep =
            move |connection: &mut SqliteConnection| idempotency::sweep(connection, retention);
        match self.session.change(sweep).await {
            Ok(0) => 0,
            Ok(records) => {
                tracing::debug!(records, "idempotency keys were swept");
                records
            }
            Err(error) => {
                tracing::warn!(
                    reason = error.to_string(),
                    "idempotency keys were not swept"
                );
                0
            }
        }
    }
}

fn sweep_pause(retention: Duration) -> Duration {
    MAX_SWEEP_PAUSE.min(retention / 4)
}
