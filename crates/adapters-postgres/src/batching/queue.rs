use std::{collections::VecDeque, sync::PoisonError, time::Duration};

use tokio::sync::oneshot;

use super::{
    pending::{Pending, Response},
    request::{BatchError, Request},
};
use crate::{
    concurrency::{Instant, Mutex, MutexGuard, Notify, sleep},
    metrics::KindMetrics,
};

/// How long a request waits for a batch in flight before it is sent on another connection. Batches take less, unless
/// PostgreSQL or the connection is slow.
const STALLED_AFTER: Duration = Duration::from_millis(5);

/// Requests that wait for a dispatcher, in the order in which they came.
pub(super) struct Queue<R: Request> {
    state: Mutex<State<R>>,
    /// Wakes the first dispatcher.
    changed: Notify,
    /// Wakes another dispatcher.
    waiting: Notify,
    capacity: usize,
    pub(super) metrics: KindMetrics,
}

struct State<R: Request> {
    requests: VecDeque<(u64, Pending<R>)>,
    last_number: u64,
    closed: bool,
}

/// A place in the queue. The request leaves the queue when its ticket is dropped.
pub(super) struct Ticket<'a, R: Request> {
    queue: &'a Queue<R>,
    number: u64,
}

impl<R: Request> Queue<R> {
    pub(super) fn new(capacity: usize, metrics: KindMetrics) -> Self {
        let state = State { requests: VecDeque::new(), last_number: 0, closed: false };
        metrics.queue_limit.inc_by(capacity as u64);
        Self { state: Mutex::new(state), changed: Notify::new(), waiting: Notify::new(), capacity, metrics }
    }

    pub(super) fn add(
        &self,
        request: R,
        now: Instant,
    ) -> Result<(Ticket<'_, R>, oneshot::Receiver<Response<R>>), BatchError> {
        let (pending, receiver) = Pending::new(request, now);
        let mut state = self.lock();
        if state.closed {
            return Err(BatchError::Unavailable("the dispatcher has stopped".to_owned()));
        }
        if state.requests.len() >= self.capacity {
            return Err(BatchError::Overloaded);
        }
        state.last_number += 1;
        let number = state.last_number;
        state.requests.push_back((number, pending));
        self.metrics.queued.inc();
        if state.requests.len() == 1 {
            self.wake();
        }
        drop(state);
        Ok((Ticket { queue: self, number }, receiver))
    }

    /// Takes all requests, up to the maximum of a batch; waits while there are none. `None` after the queue is closed
    /// and empty.
    pub(super) async fn take_batch(&self) -> Option<Vec<Pending<R>>> {
        loop {
            {
                let mut state = self.lock();
                if !state.requests.is_empty() {
                    return Some(self.drain_batch(&mut state));
                }
                if state.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Takes a batch as [`take_batch`](Self::take_batch) does, but only after a request has waited for
    /// [`STALLED_AFTER`]: larger batches cost less.
    pub(super) async fn take_stalled_batch(&self) -> Option<Vec<Pending<R>>> {
        loop {
            let oldest = {
                let state = self.lock();
                if state.closed && state.requests.is_empty() {
                    return None;
                }
                state.oldest()
            };
            let Some(oldest) = oldest else {
                self.waiting.notified().await;
                continue;
            };
            sleep(STALLED_AFTER).await;
            let mut state = self.lock();
            if state.oldest() == Some(oldest) {
                return Some(self.drain_batch(&mut state));
            }
        }
    }

    fn drain_batch(&self, state: &mut State<R>) -> Vec<Pending<R>> {
        let count = state.batch_len();
        let batch = state.requests.drain(..count).map(|(_, pending)| pending).collect();
        self.metrics.queued.dec_by(count as u64);
        if !state.requests.is_empty() {
            self.wake();
        }
        batch
    }

    fn wake(&self) {
        self.changed.notify_one();
        self.waiting.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        // A dispatcher that ends closes the queue again, which wakes the next one.
        self.wake();
    }

    /// Refuses new requests and drops the pending requests, which closes their channels.
    pub(super) fn close_and_clear(&self) {
        self.close();
        let requests = std::mem::take(&mut self.lock().requests);
        self.metrics.queued.dec_by(requests.len() as u64);
        // Dropping them runs other code, so the lock is not held.
        drop(requests);
    }

    #[cfg(all(test, shuttle))]
    pub(super) fn len(&self) -> usize {
        self.lock().requests.len()
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Request> State<R> {
    fn oldest(&self) -> Option<u64> {
        self.requests.front().map(|(number, _)| *number)
    }

    /// Number of requests in the next batch.
    fn batch_len(&self) -> usize {
        let mut rows = 0;
        let fitting = self.requests.iter().take_while(|(_, pending)| {
            rows = pending.request.rows().saturating_add(rows);
            rows <= R::MAX_ROWS
        });
        fitting.count().max(self.requests.len().min(1))
    }
}

impl<R: Request> Drop for Queue<R> {
    fn drop(&mut self) {
        self.metrics.queue_limit.dec_by(self.capacity as u64);
    }
}

impl<R: Request> Ticket<'_, R> {
    /// Removes the request from the queue. Returns `false` if it is already in flight.
    pub(super) fn withdraw(&self) -> bool {
        let mut state = self.queue.lock();
        let index = state.requests.binary_search_by_key(&self.number, |(number, _)| *number);
        let request = index.ok().and_then(|index| state.requests.remove(index));
        drop(state);
        if request.is_some() {
            self.queue.metrics.queued.dec();
        }
        request.is_some()
    }
}

impl<R: Request> Drop for Ticket<'_, R> {
    fn drop(&mut self) {
        self.withdraw();
    }
}
