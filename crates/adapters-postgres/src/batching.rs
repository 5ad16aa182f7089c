//! Group commit: many creates, one statement, one commit.
//!
//! **Problem.** A commit waits for the disk. With a commit per pet, the disk limits the number of creates per second.
//!
//! **Invariant.** While one batch is committed, requests wait in a bounded queue; the next batch takes all of them, up
//! to [`MAX_BATCH`](writer::MAX_BATCH). A response is sent after the commit. A pending request leaves the queue when
//! its client disconnects or its timeout passes, and is never stored then; a request in flight gets the outcome of its
//! commit, which is "unknown" unless PostgreSQL reported one. If PostgreSQL refuses a row, the other rows are still
//! stored.
//!
//! **Proof.** `tests/postgres/group_commit.rs` (batches, queue), `refusals.rs` (rows that are refused), `outcome.rs`
//! and `storm.rs` (lost connections), `endings.rs` (the end of the writer).

mod add_request;
mod queue;
mod session;
mod writer;

use std::{sync::Arc, time::Duration};

use animal_store_app::ports::{AddPetError, StorageError};
use tokio::{task::JoinHandle, time::timeout};

pub(crate) use self::{
    add_request::{AddRequest, AddResult, column_names, unnest},
    session::BatchSession,
};
use self::{queue::Queue, writer::Writer};
use crate::connection::{ConnectionSettings, Supervisor};

/// Adds pets in batches, on one connection. After the last clone is dropped, the writer empties the queue and ends.
pub(crate) struct Batcher<R: AddRequest>(Arc<Shared<R>>);

struct Shared<R: AddRequest> {
    queue: Arc<Queue<R>>,
    supervisor: Arc<Supervisor<BatchSession<R>>>,
    timeout: Duration,
}

impl<R: AddRequest> Batcher<R> {
    /// Starts the writer on the current runtime.
    pub(crate) fn start(settings: ConnectionSettings) -> (Self, JoinHandle<()>) {
        let (endpoint, timeout) = (settings.endpoint.clone(), settings.postgres.timeout);
        let queue = Arc::new(Queue::new(settings.postgres.max_waiting_creates));
        let supervisor = Arc::new(Supervisor::new(settings, R::PURPOSE));
        let writer = Writer { queue: Arc::clone(&queue), supervisor: Arc::clone(&supervisor), endpoint, timeout };
        let writer_task = tokio::spawn(writer.run());
        (Self(Arc::new(Shared { queue, supervisor, timeout })), writer_task)
    }

    pub(crate) fn supervisor(&self) -> Arc<Supervisor<BatchSession<R>>> {
        Arc::clone(&self.0.supervisor)
    }

    /// Adds a pet. Returns after its commit.
    pub(crate) async fn add(&self, request: R) -> AddResult {
        let Shared { queue, supervisor, .. } = &*self.0;
        supervisor.connection().await.map_err(StorageError::from)?;
        let (ticket, mut response) = queue.add(request)?;
        match timeout(self.0.timeout, &mut response).await {
            Ok(response) => response.unwrap_or_else(|_| Err(writer_ended())),
            Err(_) if ticket.withdraw() => Err(StorageError::Timeout.into()),
            // The request is in flight: the timeout of the writer applies.
            Err(_) => response.await.unwrap_or_else(|_| Err(writer_ended())),
        }
    }
}

fn writer_ended() -> AddPetError {
    AddPetError::OutcomeUnknown("the writer has stopped".into())
}

impl<R: AddRequest> Clone for Batcher<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: AddRequest> Drop for Shared<R> {
    fn drop(&mut self) {
        self.queue.close();
    }
}
