//! Creates, by one task and in batches.
//!
//! **Problem.** A commit waits for the disk, SQLite has one writer at a time, and a retry must not add a second pet.
//!
//! **Invariant.** The writer begins a transaction, takes all creates that wait, inserts them in the order in which they
//! came, and commits. A response is sent after the commit, or the outcome is reported as unknown. The record of an
//! idempotency key and its pet are stored by one transaction. A create whose timeout passes in the queue is not stored.
//!
//! **Proof.** `tests/sqlite/group_commit.rs`, `outcomes.rs`, `kills.rs`, `sweep.rs`.

mod batch;
mod sweep;
mod writer;

use std::{sync::Arc, time::Duration};

use animal_store_adapter_kit::queue::{Request, SendError, Sender, queue};
use animal_store_app::ports::{AddPet, AddPetError, AddedPet, StoreFailure};
use tokio::task::JoinHandle;

use self::writer::Writer;
use crate::{SqliteFile, SqliteSettings, metrics::Metrics};

/// Sends creates to the writer. When it is dropped, the writer empties the queue and ends.
pub(crate) struct Creates {
    file: SqliteFile,
    queue: Sender<Create>,
    timeout: Duration,
    metrics: Arc<Metrics>,
}

struct Create(AddPet);

impl Request for Create {
    type Response = Result<AddedPet, AddPetError>;
}

impl Creates {
    /// Starts the writer, on the current runtime. Returns its task as well.
    pub(crate) fn start(
        file: &SqliteFile,
        settings: &SqliteSettings,
        metrics: &Arc<Metrics>,
    ) -> (Self, JoinHandle<()>) {
        let (queue, taker) = queue(settings.max_waiting_creates, metrics.creates.clone());
        let writer = Writer::new(file, taker, metrics, settings.idempotency_retention);
        let (file, timeout, metrics) = (file.clone(), settings.timeout, Arc::clone(metrics));
        (Self { file, queue, timeout, metrics }, tokio::spawn(writer.run()))
    }

    /// The file of the writer.
    pub(crate) fn file(&self) -> &SqliteFile {
        &self.file
    }

    pub(crate) async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        // After the timeout, a create whose transaction began waits for the disk only.
        let sent = self.queue.send(Create(request), self.timeout, self.timeout).await;
        let result = sent.unwrap_or_else(|error| {
            self.metrics.create_timeouts.inc_by(matches!(error, SendError::NotSent).into());
            Err(error.of_change().into())
        });
        if matches!(result, Err(AddPetError::Store(StoreFailure::OutcomeUnknown(_)))) {
            self.metrics.unknown_outcomes.inc();
        }
        result
    }
}
