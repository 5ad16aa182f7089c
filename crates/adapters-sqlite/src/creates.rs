//! Creates, by one thread and in batches.
//!
//! **Problem.** A commit waits for the disk, SQLite has one writer at a time, and a retry must not add a second pet.
//!
//! **Invariant.** The writer begins a transaction, takes all creates that wait, inserts them in the order in which they
//! came, and commits. A response is sent after the commit, or the outcome is reported as unknown. The record of an
//! idempotency key and its pet are stored by one transaction. A create whose timeout passes in the queue is not stored.
//!
//! **Proof.** `tests/sqlite/group_commit.rs`, `outcomes.rs`, `kills.rs`.

mod add;
mod batch;
mod sweep;
mod writer;

use std::{sync::Arc, time::Duration};

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, StoreFailure};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use self::{add::Write, writer::Writer};
use crate::{SqliteFile, SqliteFileError, SqliteSettings, metrics::Metrics, queue::Queue};

/// Sends creates to the writer. When it is dropped, the writer empties the queue and ends.
pub(crate) struct Creates {
    queue: Arc<Queue<Write>>,
    timeout: Duration,
    metrics: Arc<Metrics>,
}

impl Creates {
    /// Starts the writer. It holds a clone of `running` until it ends.
    pub(crate) fn start(
        file: &SqliteFile,
        settings: &SqliteSettings,
        metrics: &Arc<Metrics>,
        running: &mpsc::Sender<()>,
    ) -> Result<Self, SqliteFileError> {
        let queue = Arc::new(Queue::new(settings.max_waiting_creates, metrics.creates.clone()));
        Writer::start(file, settings, Arc::clone(&queue), Arc::clone(metrics), running.clone())?;
        Ok(Self { queue, timeout: settings.timeout, metrics: Arc::clone(metrics) })
    }

    pub(crate) async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        let (sender, mut receiver) = oneshot::channel();
        let ticket = self.queue.add(Write::Add { request, sender })?;
        let mut response = timeout(self.timeout, &mut receiver).await;
        if response.is_err() {
            if ticket.withdraw() {
                self.metrics.create_timeouts.inc();
                return Err(StoreFailure::Timeout.into());
            }
            // The transaction began: the create waits for the disk only.
            response = timeout(self.timeout, &mut receiver).await;
        }
        ticket.responded();
        let result = match response {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(AddPetError::Store(StoreFailure::OutcomeUnknown("the writer panicked".into()))),
            Err(_) => Err(AddPetError::Store(StoreFailure::OutcomeUnknown("the disk did not respond in time".into()))),
        };
        if matches!(result, Err(AddPetError::Store(StoreFailure::OutcomeUnknown(_)))) {
            self.metrics.unknown_outcomes.inc();
        }
        result
    }

    /// Checks that the writer can begin a transaction, in the file that the path names.
    pub(crate) async fn check(&self) -> Result<(), StoreFailure> {
        let (sender, receiver) = oneshot::channel();
        let _ticket = self.queue.add(Write::Check { sender })?;
        match timeout(self.timeout, receiver).await {
            Ok(response) => response.unwrap_or_else(|_| Err(StoreFailure::Unavailable("the writer panicked".into()))),
            Err(_) => Err(StoreFailure::Timeout),
        }
    }
}

impl Drop for Creates {
    fn drop(&mut self) {
        self.queue.close();
    }
}
