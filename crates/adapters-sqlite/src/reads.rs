//! Reads, on threads of their own.
//!
//! **Problem.** A read of a page that is not in memory waits for the disk. On the thread of an HTTP worker, all
//! requests of that worker would wait.
//!
//! **Invariant.** Every read is executed by a thread that does nothing else. A read that waits for the disk delays the
//! few reads that the same thread took with it, and no others. A read sees each pet that was confirmed before it. The
//! queue is bounded. A failed connection is replaced, and the other reads go on.
//!
//! **Proof.** `tests/sqlite/reads.rs`.

mod query;
mod read;
mod reader;

use std::{sync::Arc, time::Duration};

use animal_store_app::ports::StoreFailure;
use animal_store_domain::{Pet, PetId, PetStatus};
use prometheus_client::metrics::counter::Counter;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use self::{read::Read, reader::Reader};
use crate::{SqliteFile, SqliteFileError, SqliteSettings, metrics::Metrics, queue::Queue};

/// Sends reads to the threads. When it is dropped, they end.
pub(crate) struct Reads {
    queue: Arc<Queue<Read>>,
    timeout: Duration,
    metrics: Arc<Metrics>,
}

impl Reads {
    /// Starts the threads. Each holds a clone of `running` until it ends.
    pub(crate) fn start(
        file: &SqliteFile,
        settings: &SqliteSettings,
        metrics: &Arc<Metrics>,
        running: &mpsc::Sender<()>,
    ) -> Result<Self, SqliteFileError> {
        let queue = Arc::new(Queue::new(settings.max_waiting_reads, metrics.reads.clone()));
        let reads = Self { queue, timeout: settings.timeout, metrics: Arc::clone(metrics) };
        for _ in 0..reader::THREADS {
            Reader::start(file, Arc::clone(&reads.queue), running.clone())?;
        }
        Ok(reads)
    }

    pub(crate) async fn find(&self, id: PetId) -> Result<Option<Pet>, StoreFailure> {
        let (sender, receiver) = oneshot::channel();
        self.send(Read::Find { id, sender }, receiver, &self.metrics.get_timeouts).await
    }

    pub(crate) async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> Result<Vec<Pet>, StoreFailure> {
        let (sender, receiver) = oneshot::channel();
        self.send(Read::List { status, after, limit, sender }, receiver, &self.metrics.list_timeouts).await
    }

    async fn send<T>(
        &self,
        read: Read,
        receiver: oneshot::Receiver<Result<T, StoreFailure>>,
        timeouts: &Counter,
    ) -> Result<T, StoreFailure> {
        let ticket = self.queue.add(read)?;
        let Ok(response) = timeout(self.timeout, receiver).await else {
            timeouts.inc();
            return Err(StoreFailure::Timeout);
        };
        ticket.responded();
        response.unwrap_or_else(|_| Err(StoreFailure::Unavailable("the thread of this read panicked".into())))
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.queue.close();
    }
}
