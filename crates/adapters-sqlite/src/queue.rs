//! The queue between the requests of all workers and the threads that use the file.
//!
//! It is bounded. A request leaves it when its client disconnects or its timeout passes, and is never executed then.
//! `queue/schedules.rs` tests the orders of steps.

use std::{collections::VecDeque, sync::PoisonError};

use animal_store_app::ports::StoreFailure;

use crate::{
    concurrency::{Condvar, Instant, Mutex, MutexGuard},
    metrics::QueueMetrics,
};

/// Requests that wait for a thread, in the order in which they came.
pub(crate) struct Queue<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
    capacity: usize,
    metrics: QueueMetrics,
}

struct State<R> {
    requests: VecDeque<(u64, R)>,
    last_number: u64,
    /// Threads that wait for a request.
    idle: usize,
    /// Idle threads that were notified: a notification without a waiting thread would be a wasted system call.
    notified: usize,
    closed: bool,
}

/// A place in the queue. The request leaves the queue when its ticket is dropped.
pub(crate) struct Ticket<'a, R> {
    queue: &'a Queue<R>,
    number: u64,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// A request waits.
    Request,
    /// The deadline has passed.
    Deadline,
    /// The queue is closed and empty.
    Closed,
}

impl<R> Queue<R> {
    pub(crate) fn new(capacity: usize, metrics: QueueMetrics) -> Self {
        metrics.limit.set(capacity as u64);
        let requests = VecDeque::new();
        let state = State { requests, last_number: 0, idle: 0, notified: 0, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity, metrics }
    }

    pub(crate) fn add(&self, request: R) -> Result<Ticket<'_, R>, StoreFailure> {
        let mut state = self.lock();
        if state.closed {
            return Err(StoreFailure::Unavailable("the threads of the storage have ended".into()));
        }
        if state.requests.len() >= self.capacity {
            self.metrics.refused.inc();
            return Err(StoreFailure::Overloaded);
        }
        state.last_number += 1;
        let number = state.last_number;
        state.requests.push_back((number, request));
        self.metrics.waiting.inc();
        let notify = state.idle > state.notified;
        state.notified += usize::from(notify);
        drop(state);
        if notify {
            self.changed.notify_one();
        }
        Ok(Ticket { queue: self, number })
    }

    /// Waits for a request, at most until the deadline.
    pub(crate) fn wait(&self, deadline: Instant) -> Wakeup {
        self.wait_locked(self.lock(), Some(deadline)).1
    }

    /// Takes the requests at the front, at most `count`.
    pub(crate) fn take(&self, count: usize) -> Vec<R> {
        self.take_locked(&mut self.lock(), count)
    }

    /// Waits for requests and takes the share of one of several threads, at most `max`. `None` after the queue is
    /// closed and empty.
    pub(crate) fn take_share(&self, threads: usize, max: usize) -> Option<Vec<R>> {
        let (mut state, wakeup) = self.wait_locked(self.lock(), None);
        (wakeup == Wakeup::Request).then(|| {
            let share = state.requests.len().div_ceil(threads).min(max);
            self.take_locked(&mut state, share)
        })
    }

    /// Refuses new requests. The threads end after the pending requests.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn wait_locked<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<R>>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, State<R>>, Wakeup) {
        loop {
            if !state.requests.is_empty() {
                return (state, Wakeup::Request);
            }
            if state.closed {
                return (state, Wakeup::Closed);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return (state, Wakeup::Deadline);
            }
            state.idle += 1;
            state = match left {
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.idle -= 1;
            state.notified = state.notified.saturating_sub(1);
        }
    }

    fn take_locked(&self, state: &mut State<R>, count: usize) -> Vec<R> {
        let count = count.min(state.requests.len());
        self.metrics.waiting.dec_by(count as u64);
        state.requests.drain(..count).map(|(_, request)| request).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Ticket<'_, R> {
    /// Removes the request from the queue. Returns `false` if a thread has taken it.
    pub(crate) fn withdraw(&self) -> bool {
        let mut state = self.queue.lock();
        let index = state.requests.binary_search_by_key(&self.number, |(number, _)| *number);
        let request = index.ok().and_then(|index| state.requests.remove(index));
        drop(state);
        if request.is_some() {
            self.queue.metrics.waiting.dec();
        }
        request.is_some()
    }

    /// Ends the ticket of a request that has its response.
    pub(crate) fn responded(self) {
        std::mem::forget(self);
    }
}

impl<R> Drop for Ticket<'_, R> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
