//! Requests that wait for a batch.
//!
//! **Problem.** A statement, a commit or a wake-up of a thread costs more than the row that it reads or writes.
//!
//! **Invariant.** The queue is bounded. A taker takes all requests that wait, up to a number of rows, in the order in
//! which they came. A request leaves the queue when its client disconnects or its timeout passes, and is then never
//! taken. The takers end after the sender is dropped and the queue is empty. While there is no taker, because all have
//! lost their connections or have panicked, each request fails at once.
//!
//! **Proof.** `tests.rs`, `schedules.rs` (orders of steps), `pending/tests.rs` (spans).

mod pending;
#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod ticket;

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    time::Duration,
};

use animal_store_app::ports::StoreFailure;
use tokio::sync::watch;

pub use self::pending::Pending;
use self::ticket::Ticket;
use crate::{
    concurrency::{Instant, Mutex, MutexGuard, Notify, timeout_at},
    metrics::QueueMetrics,
};

const LOST: &str = "the storage stopped before it responded";
const LATE: &str = "the storage did not respond in time";
const UNSERVED: &str = "there is no connection to the storage";

/// A request that shares its batch with others.
pub trait Request: Send + 'static {
    /// The response to it, unless the storage fails.
    type Response: Send + 'static;

    /// Greatest number of rows that it reads or writes.
    fn rows(&self) -> usize {
        1
    }

    /// Whether no other request is in its batch.
    fn is_alone(&self) -> bool {
        false
    }
}

/// Sends requests. When it is dropped, the takers empty the queue and end.
pub struct Sender<R: Request> {
    queue: Arc<Queue<R>>,
    _open: watch::Sender<()>,
}

/// Makes takers.
pub struct Takers<R: Request> {
    queue: Arc<Queue<R>>,
    open: watch::Receiver<()>,
}

/// Takes requests. When the last taker is dropped, pending requests fail.
pub struct Taker<R: Request>(Arc<Queue<R>>);

struct Queue<R: Request> {
    state: Mutex<State<R>>,
    /// Wakes a taker.
    changed: Notify,
    capacity: usize,
    outcome_timeout: Option<Duration>,
    metrics: QueueMetrics,
}

struct State<R: Request> {
    requests: VecDeque<(u64, Pending<R>)>,
    last_number: u64,
    takers: usize,
    has_sender: bool,
}

/// Creates a queue for at most this number of requests. `outcome_timeout`: for changes, how much longer than its
/// timeout a request waits for the outcome after it was taken. Without a taker, requests fail.
pub fn queue<R: Request>(
    capacity: usize,
    outcome_timeout: Option<Duration>,
    metrics: QueueMetrics,
) -> (Sender<R>, Takers<R>) {
    let state = State {
        requests: VecDeque::new(),
        last_number: 0,
        takers: 0,
        has_sender: true,
    };
    let queue = Arc::new(Queue {
        state: Mutex::new(state),
        changed: Notify::new(),
        capacity,
        outcome_timeout,
        metrics,
    });
    let (sender, open) = watch::channel(());
    (
        Sender {
            queue: Arc::clone(&queue),
            _open: sender,
        },
        Takers { queue, open },
    )
}

impl<R: Request> Sender<R> {
    /// Sends a request and waits for its response. If `timeout` passes while it is in the queue, it is never taken.
    ///
    /// # Errors
    /// [`StoreFailure::OutcomeUnknown`] if a change was taken and has no response. After any other error, a change was
    /// not made. Each is counted.
    pub async fn send(&self, request: R, timeout: Duration) -> Result<R::Response, StoreFailure> {
        let response = self.queue.response_to(request, timeout).await;
        response.inspect_err(|failure| self.queue.metrics.failures.count(failure))
    }

    /// Whether there is a taker.
    pub fn is_served(&self) -> bool {
        self.queue.lock().takers > 0
    }
}

impl<R: Request> Takers<R> {
    /// Makes a taker.
    pub fn taker(&self) -> Taker<R> {
        self.queue.lock().takers += 1;
        Taker(Arc::clone(&self.queue))
    }

    /// Whether the sender is dropped.
    pub fn is_closed(&self) -> bool {
        self.open.has_changed().is_err()
    }

    /// Waits until the sender is dropped.
    pub async fn closed(&self) {
        // Nothing is sent.
        let _ = self.open.clone().changed().await;
    }
}

impl<R: Request> Taker<R> {
    /// Waits for a request. Returns `false` if the queue is empty and has no sender: the taker has to be dropped.
    pub async fn ready(&self) -> bool {
        loop {
            {
                let state = self.0.lock();
                if !state.requests.is_empty() || !state.has_sender {
                    return !state.requests.is_empty();
                }
            }
            self.0.changed.notified().await;
        }
    }

    /// Takes the first requests, up to this number of rows, but at least one if any waits.
    pub fn take(&self, max_rows: usize) -> Vec<Pending<R>> {
        let mut state = self.0.lock();
        let mut rows = 0;
        let fitting = state.requests.iter().take_while(|(_, pending)| {
            let request = &pending.request;
            let own_rows = if request.is_alone() {
                max_rows
            } else {
                request.rows()
            };
            rows = own_rows.saturating_add(rows);
            rows <= max_rows
        });
        let count = fitting.count().max(state.requests.len().min(1));
        let batch = state
            .requests
            .drain(..count)
            .map(|(_, pending)| pending)
            .collect();
        let is_empty = state.requests.is_empty();
        drop(state);
        if !is_empty {
            self.0.changed.notify_one();
        }
        batch
    }

    /// The metrics of the queue.
    pub fn metrics(&self) -> &QueueMetrics {
        &self.0.metrics
    }
}

impl<R: Request> Queue<R> {
    async fn response_to(
        &self,
        request: R,
        timeout: Duration,
    ) -> Result<R::Response, StoreFailure> {
        let now = Instant::now();
        let (ticket, mut response) = self.add(request, now)?;
        let mut received = timeout_at(now + timeout, &mut response).await;
        if received.is_err() {
            if ticket.withdraw() {
                return Err(StoreFailure::Timeout);
            }
            if let Some(outcome_timeout) = self.outcome_timeout {
                received = timeout_at(now + timeout + outcome_timeout, response).await;
            }
        }
        let is_change = self.outcome_timeout.is_some();
        match received {
            Ok(Ok(response)) => response,
            Ok(Err(_)) if is_change => Err(StoreFailure::OutcomeUnknown(LOST.into())),
            Ok(Err(_)) => Err(StoreFailure::Unavailable(LOST.into())),
            Err(_) if is_change => Err(StoreFailure::OutcomeUnknown(LATE.into())),
            Err(_) => Err(StoreFailure::Timeout),
        }
    }

    fn add(
        &self,
        request: R,
        now: Instant,
    ) -> Result<(Ticket<'_, R>, pending::Receiver<R>), StoreFailure> {
        let (pending, response) = Pending::new(request, now);
        let mut state = self.lock();
        if state.takers == 0 {
            return Err(StoreFailure::Unavailable(UNSERVED.into()));
        }
        if state.requests.len() >= self.capacity {
            return Err(StoreFailure::Overloaded);
        }
        state.last_number += 1;
        let number = state.last_number;
        state.requests.push_back((number, pending));
        let is_first = state.requests.len() == 1;
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
        Ok((
            Ticket {
                queue: self,
                number,
            },
            response,
        ))
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Request> Drop for Sender<R> {
    fn drop(&mut self) {
        self.queue.lock().has_sender = false;
        self.queue.changed.notify_one();
    }
}

impl<R: Request> Drop for Taker<R> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.takers -= 1;
        let failed = if state.takers == 0 {
            std::mem::take(&mut state.requests)
        } else {
            VecDeque::new()
        };
        drop(state);
        for (_, pending) in failed {
            pending.respond(&self.0.metrics, |_| {
                Err(StoreFailure::Unavailable(UNSERVED.into()))
            });
        }
        // This one may have been woken for requests that it has not taken, or for the end.
        self.0.changed.notify_one();
    }
}
