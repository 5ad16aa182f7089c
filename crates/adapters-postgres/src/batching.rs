//! Many requests, one statement.
//!
//! **Problem.** A statement costs PostgreSQL and this process more than the rows that it reads or writes, and a commit
//! waits for the disk.
//!
//! **Invariant.** A request is sent at once if none of its kind is in flight. Otherwise it waits in a bounded queue.
//! The next batch takes all requests that wait, up to a number of rows: when the response arrives or, if there are
//! several connections, after a few milliseconds. A pending request leaves the queue when its client disconnects or its
//! timeout passes, and is never executed then. A request joins a batch before the batch is sent, so a read sees every
//! pet that was confirmed before it. A request that fails alone does not fail the others of its batch.
//!
//! **Proof.** `tests/postgres/group_commit.rs` and `refusals.rs` (creates), `read_batches.rs`, `read_failures.rs` and
//! `read_your_writes.rs` (reads), `endings.rs` (the end of a dispatcher), `metrics.rs`; `pending/tests.rs` (spans);
//! `schedules.rs` (orders of steps).

mod dispatcher;
mod pending;
mod queue;
mod request;
#[cfg(all(test, shuttle))]
mod schedules;

use std::sync::Arc;

use tokio::task::JoinHandle;

pub(crate) use self::request::{BatchError, Failure, Request, Split};
use self::{dispatcher::Dispatcher, pending::Response, queue::Queue};
use crate::{
    concurrency::{Instant, timeout_at},
    connection::{ConnectionSettings, Supervisors},
    metrics::KindMetrics,
};

/// Sends requests of one kind in batches. When it is dropped, the dispatchers empty the queue and end.
pub(crate) struct Batcher<R: Request> {
    queue: Arc<Queue<R>>,
    settings: ConnectionSettings,
}

impl<R: Request> Batcher<R> {
    /// Starts as many dispatchers as there are connections, on the current runtime. The queue has this capacity.
    pub(crate) fn start(
        settings: &ConnectionSettings,
        supervisors: &Arc<Supervisors<R::Session>>,
        capacity: usize,
        metrics: &KindMetrics,
    ) -> (Self, Vec<JoinHandle<()>>) {
        let queue = Arc::new(Queue::new(capacity, metrics.clone()));
        let batcher = Self { queue, settings: settings.clone() };
        let dispatchers = (0..supervisors.len()).map(|number| {
            let (queue, supervisors) = (Arc::clone(&batcher.queue), Arc::clone(supervisors));
            tokio::spawn(Dispatcher { queue, is_first: number == 0, supervisors, settings: settings.clone() }.run())
        });
        let dispatchers = dispatchers.collect();
        (batcher, dispatchers)
    }

    /// Sends a request in a batch. Returns `None` if the dispatcher ended before it responded.
    pub(crate) async fn send(&self, request: R) -> Option<Result<R::Response, R::Error>> {
        let result = self.response(request).await?;
        let metrics = &self.queue.metrics;
        match &result {
            Err(BatchError::Overloaded) => _ = metrics.refused.inc(),
            Err(BatchError::Timeout) => _ = metrics.timeouts.inc(),
            _ => {}
        }
        Some(result.unwrap_or_else(|error| Err(error.into())))
    }

    async fn response(&self, request: R) -> Option<Response<R>> {
        let now = Instant::now();
        let (ticket, mut response) = match self.queue.add(request, now) {
            Ok(queued) => queued,
            Err(error) => return Some(Err(error)),
        };
        match timeout_at(now + self.settings.postgres.timeout, &mut response).await {
            Ok(response) => response.ok(),
            // The request is in flight: the timeout of its batch applies.
            Err(_) if R::OUTCOME_MATTERS && !ticket.withdraw() => response.await.ok(),
            Err(_) => Some(Err(BatchError::Timeout)),
        }
    }
}

impl<R: Request> Drop for Batcher<R> {
    fn drop(&mut self) {
        self.queue.close();
    }
}
