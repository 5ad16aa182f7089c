//! Creates, by one thread and in batches.
//!
//! **Problem.** A commit waits for the disk, SQLite has one writer at a time, and a retry must not add a second pet. A
//! change of threads costs as much as the statements of a create.
//!
//! **Invariant.** The writer is a thread that begins a transaction, takes all creates that wait, inserts them in the
//! order in which they came, and commits. A response is sent after the commit, or the outcome is reported as unknown.
//! The record of an idempotency key and its pet are stored by one transaction. A create whose timeout passes in the
//! queue is not stored.
//!
//! **Proof.** `tests/sqlite/group_commit.rs`, `outcomes.rs`, `kills.rs`, `sweep.rs`; `tests.rs` (pauses).

pub(crate) mod idempotency;
mod statements;
#[cfg(test)]
mod tests;

use std::{
    pin::pin,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use animal_store_adapter_kit::{
    Outage, Panics,
    metrics::QueueMetrics,
    queue::{Pending, Request, Sender, Taker, queue},
};
use animal_store_app::ports::{AddPet, AddPetError, AddedPet, StoreFailure};
use animal_store_domain::{NewPet, Pet};
use diesel::connection::SimpleConnection;
use tokio::{
    runtime::Handle,
    select,
    sync::{Mutex, oneshot},
    task::JoinHandle,
    time::sleep,
};

use self::{
    idempotency::SWEEP_SIZE,
    statements::{AddOutcome, Batch},
};
use crate::{
    SqliteFile, SqliteFileError, SqliteSettings,
    file::Disk,
    session::{Session, begin, change, commit},
};

/// Greatest number of creates in a transaction.
const MAX_BATCH: usize = 1000;

/// Longest pause between two sweeps.
const MAX_SWEEP_PAUSE: Duration = Duration::from_mins(1);

/// A transaction that holds the write lock for longer is followed by a pause. Another process tries to take the lock
/// each millisecond, so that an import and a server take turns.
const LONG_TRANSACTION: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_millis(3);

/// The way to the writer, which ends after this is dropped and the queue is empty.
pub(crate) struct Creates {
    /// Closed before the writer ends.
    pub(crate) file: SqliteFile,
    pub(crate) timeout: Duration,
    /// Locked during a probe: probes at the same time take turns.
    pub(crate) probe: Arc<Mutex<()>>,
    /// A panic of a dispatcher of reads ends the storage: reads of its worker would get 503 until the process ends.
    pub(crate) panics: Panics,
    queue: Sender<Create>,
}

/// A create that waits for the writer.
struct Create(AddPet);

impl Request for Create {
    /// `None`: the idempotency key was used for another pet.
    type Response = Option<AddedPet>;
}

struct Writer {
    session: Session,
    taker: Taker<Create>,
    retention: Duration,
}

impl Creates {
    /// Starts the writer, on a thread of its own. Its task ends with it, or when a dispatcher of reads panics.
    pub(crate) fn start(
        file: &SqliteFile,
        settings: &SqliteSettings,
        metrics: QueueMetrics,
    ) -> (Self, JoinHandle<()>) {
        // After the timeout, a create whose transaction began waits for the disk only.
        let (queue, takers) = queue(
            settings.max_waiting_creates,
            Some(settings.timeout),
            metrics,
        );
        let writer = Writer {
            session: Session::new(file),
            taker: takers.taker(),
            retention: settings.idempotency_retention,
        };
        let creates = Self {
            file: file.clone(),
            timeout: settings.timeout,
            probe: Arc::default(),
            panics: Panics::default(),
            queue,
        };
        let panics = creates.panics.clone();
        let task = async move {
            select! {
                () = Arc::new(writer).supervise() => {}
                () = panics.first() => {}
            }
        };
        (creates, tokio::spawn(task))
    }

    pub(crate) async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        let added = self.queue.send(Create(request), self.timeout).await?;
        added.ok_or(AddPetError::IdempotencyMismatch)
    }
}

impl Writer {
    /// Runs the writer on a thread of its own: it leaves those for blocking work to others. A panic fails the creates
    /// of its batch with an unknown outcome and closes the connection, and another thread goes on, unless the system
    /// refuses it.
    async fn supervise(self: Arc<Self>) {
        loop {
            let writer = Arc::clone(&self);
            let runtime = Handle::current();
            let (sender, ended) = oneshot::channel();
            let run = move || {
                runtime.block_on(writer.run());
                drop(writer);
                let _ = sender.send(());
            };
            let thread = thread::Builder::new().name("sqlite".to_owned()).spawn(run);
            if let Err(error) = thread {
                tracing::error!(%error, "the system refuses a thread for the writer of SQLite");
                return;
            }
            if ended.await.is_ok() {
                return;
            }
        }
    }

    /// Writes and sweeps until the sender is dropped and the queue is empty. It occupies the thread.
    async fn run(&self) {
        let mut sweep_outage = Outage::default();
        let mut next_sweep = pin!(sleep(sweep_pause(self.retention)));
        loop {
            select! {
                is_open = self.taker.ready() => {
                    if !is_open {
                        return;
                    }
                    if let Some(pause) = pause_after(self.write_batch()) {
                        sleep(pause).await;
                    }
                }
                () = &mut next_sweep, if self.session.file.is_writable() => {
                    // More expired records are deleted after the creates that wait.
                    let records = self.sweep(&mut sweep_outage);
                    let pause = if records < SWEEP_SIZE { sweep_pause(self.retention) } else { PAUSE };
                    next_sweep.set(sleep(pause));
                }
            }
        }
    }

    /// Writes the creates that wait, in one transaction. They are taken after the transaction began: a create whose
    /// timeout passes while another process writes is still in the queue. Returns the duration of the transaction.
    fn write_batch(&self) -> Duration {
        let timeout = self.session.file.timeout();
        let begun = self
            .session
            .execute(|connection| begin(connection, timeout));
        let start = Instant::now();
        let mut batch = self.taker.take(MAX_BATCH);
        let outcomes = begun.and_then(|()| self.store(&mut batch));
        let duration = start.elapsed();
        let metrics = self.taker.metrics();
        metrics.batch_duration.observe(duration.as_secs_f64());
        match outcomes {
            Ok(outcomes) => {
                for (pending, outcome) in batch.into_iter().zip(outcomes) {
                    pending.respond(metrics, |Create(request)| response(request.pet, outcome));
                }
            }
            Err(error) => {
                for pending in batch {
                    pending.respond(metrics, |_| Err(error.failure()));
                }
            }
        }
        duration
    }

    /// Adds pets and commits, in the transaction that has begun.
    fn store(&self, batch: &mut [Pending<Create>]) -> Result<Vec<AddOutcome>, SqliteFileError> {
        let size = batch.len();
        for pending in batch.iter_mut() {
            pending.sent(size, self.taker.metrics());
        }
        self.session.execute(|connection| {
            if batch.is_empty() {
                connection.batch_execute("ROLLBACK")?;
                return Ok(Vec::new());
            }
            let file = &self.session.file;
            Disk::check(file.path(), 0)?;
            let requests = batch.iter().map(|pending| &pending.request.0);
            let batch = Batch::new(requests.collect(), self.retention, file.timeout());
            let outcomes = batch.add_all(connection)?;
            commit(file, connection)?;
            Ok(outcomes)
        })
    }

    /// Returns the number of deleted records.
    fn sweep(&self, outage: &mut Outage) -> usize {
        let file = &self.session.file;
        let swept = self.session.execute(|connection| {
            // In the log, the deletions need space.
            Disk::check(file.path(), 0)?;
            let sweep = |connection: &mut _| idempotency::sweep(connection, self.retention);
            change(file, connection, sweep)
        });
        match swept {
            Ok(records) => {
                outage.succeeded();
                if records > 0 {
                    tracing::debug!(records, "idempotency keys were swept");
                }
                records
            }
            Err(error) => {
                outage.failed(error.to_string(), |reason| {
                    tracing::warn!(reason, "idempotency keys were not swept");
                });
                0
            }
        }
    }
}

fn response(pet: NewPet, outcome: AddOutcome) -> Result<Option<AddedPet>, StoreFailure> {
    let (id, replayed) = match outcome {
        AddOutcome::Added(id) => (id, false),
        AddOutcome::Replayed(id) => (id, true),
        AddOutcome::Mismatch => return Ok(None),
        AddOutcome::Refused(failure) => return Err(failure),
    };
    let pet = Pet::new(id, pet);
    Ok(Some(AddedPet { pet, replayed }))
}

/// Returns the pause after a transaction.
fn pause_after(transaction: Duration) -> Option<Duration> {
    (transaction > LONG_TRANSACTION).then_some(PAUSE)
}

fn sweep_pause(retention: Duration) -> Duration {
    MAX_SWEEP_PAUSE.min(retention / 4)
}
