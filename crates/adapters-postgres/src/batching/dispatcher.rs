use std::{collections::VecDeque, sync::Arc};

use super::{
    pending::Pending,
    queue::Queue,
    request::{BatchError, Failure, Request, Split},
};
use crate::{
    concurrency::{Instant, timeout},
    connection::{ConnectionSettings, Session, Supervisors},
};

/// Takes batches from a queue and executes them, one at a time.
pub(super) struct Dispatcher<R: Request> {
    pub(super) queue: Arc<Queue<R>>,
    /// Whether this dispatcher takes requests at once. The others take requests that have waited for a while.
    pub(super) is_first: bool,
    pub(super) supervisors: Arc<Supervisors<R::Session>>,
    pub(super) settings: ConnectionSettings,
}

impl<R: Request> Dispatcher<R> {
    pub(super) async fn run(self) {
        while let Some(mut batch) = self.next_batch().await {
            batch.sort_by(|one, other| R::order(&one.request, &other.request));
            // Bounds the delay of the queue, however often the batch is split.
            let deadline = Instant::now() + self.settings.postgres.timeout * 2;
            let mut batches = VecDeque::from([batch]);
            while let Some(mut batch) = batches.pop_front() {
                let result = if Instant::now() > deadline {
                    Err(BatchError::Timeout.into())
                } else {
                    self.execute(&mut batch).await
                };
                match result {
                    Ok(outcomes) => {
                        batch.into_iter().zip(outcomes).for_each(|(pending, outcome)| pending.respond(outcome));
                    }
                    Err(Failure { split: Some(Split { parts, last }), .. }) if batch.len() > 1 => {
                        self.queue.metrics.retries.inc();
                        let size = batch.len().div_ceil(parts);
                        while !batch.is_empty() {
                            let part = batch.split_off(batch.len().saturating_sub(size));
                            if last { batches.push_back(part) } else { batches.push_front(part) }
                        }
                    }
                    Err(Failure { error, .. }) => {
                        for pending in batch {
                            pending.fail(error.clone());
                        }
                    }
                }
            }
        }
    }

    async fn next_batch(&self) -> Option<Vec<Pending<R>>> {
        if self.is_first { self.queue.take_batch().await } else { self.queue.take_stalled_batch().await }
    }

    /// Executes a batch, without the requests whose clients have disconnected by then. The connection is free when this
    /// returns.
    async fn execute(&self, batch: &mut Vec<Pending<R>>) -> Result<Vec<R::Outcome>, Failure> {
        let connection = self.supervisors.connection().await.map_err(BatchError::from)?;
        let turn = timeout(self.settings.postgres.timeout, connection.session.turn());
        let _turn = turn.await.map_err(|_| BatchError::Timeout)?;
        batch.retain(Pending::is_awaited);
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let metrics = &self.queue.metrics;
        let (size, sent_at) = (batch.len(), Instant::now());
        metrics.batch_size.observe(u32::try_from(size).unwrap_or(u32::MAX).into());
        for pending in &mut *batch {
            pending.sent(sent_at, size, metrics);
        }
        let requests: Vec<_> = batch.iter().map(|pending| &pending.request).collect();
        let result = R::execute(&requests, &connection, &self.settings).await;
        metrics.batch_duration.observe(sent_at.elapsed().as_secs_f64());
        result
    }
}

impl<R: Request> Drop for Dispatcher<R> {
    /// Pending requests fail at once, even if a dispatcher panicked.
    fn drop(&mut self) {
        self.queue.close_and_clear();
    }
}
