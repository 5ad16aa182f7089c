use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::ports::{AddPetError, StorageError};
use tokio::sync::{Notify, oneshot};

use super::add_request::{AddRequest, AddResult};

/// Requests that wait for the writer, in the order in which they came.
pub(super) struct Queue<R> {
    state: Mutex<State<R>>,
    changed: Notify,
    capacity: usize,
}

struct State<R> {
    requests: VecDeque<(u64, Pending<R>)>,
    last_number: u64,
    closed: bool,
}

/// A request, and the channel for its response.
pub(super) struct Pending<R> {
    pub(super) request: R,
    response: oneshot::Sender<AddResult>,
}

/// A place in the queue. The request leaves the queue when its ticket is dropped.
pub(super) struct Ticket<R> {
    queue: Arc<Queue<R>>,
    number: u64,
}

impl<R> Queue<R> {
    pub(super) fn new(capacity: usize) -> Self {
        let state = State { requests: VecDeque::new(), last_number: 0, closed: false };
        Self { state: Mutex::new(state), changed: Notify::new(), capacity }
    }

    pub(super) fn add(self: &Arc<Self>, request: R) -> Result<(Ticket<R>, oneshot::Receiver<AddResult>), StorageError> {
        let (response, receiver) = oneshot::channel();
        let mut state = self.lock();
        if state.closed {
            return Err(StorageError::Unavailable("the writer has stopped".into()));
        }
        if state.requests.len() >= self.capacity {
            return Err(StorageError::Overloaded);
        }
        state.last_number += 1;
        let number = state.last_number;
        state.requests.push_back((number, Pending { request, response }));
        let was_empty = state.requests.len() == 1;
        drop(state);
        if was_empty {
            self.changed.notify_one();
        }
        Ok((Ticket { queue: Arc::clone(self), number }, receiver))
    }

    /// Takes all requests, up to a maximum; waits while there are none. `None` after the queue is closed and empty.
    pub(super) async fn take_batch(&self, max: usize) -> Option<Vec<Pending<R>>> {
        loop {
            {
                let mut state = self.lock();
                if !state.requests.is_empty() {
                    let count = state.requests.len().min(max);
                    return Some(state.requests.drain(..count).map(|(_, pending)| pending).collect());
                }
                if state.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Refuses new requests and drops the pending requests, which closes their channels.
    pub(super) fn close_and_clear(&self) {
        self.close();
        let requests = std::mem::take(&mut self.lock().requests);
        // Dropping them runs other code, so the lock is not held.
        drop(requests);
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: AddRequest> Pending<R> {
    /// Sends the response to a statement. `None` means that a database trigger suppressed the row.
    pub(super) fn respond(self, stored: Option<R::Stored>) {
        let Some(stored) = stored else {
            return self.fail(StorageError::Unavailable("a trigger suppressed the row".into()).into());
        };
        // The client may have disconnected.
        let _ = self.response.send(self.request.result(stored));
    }

    pub(super) fn fail(self, error: AddPetError) {
        // Its idempotency key is free before the client can retry.
        drop(self.request);
        let _ = self.response.send(Err(error));
    }
}

impl<R> Ticket<R> {
    /// Removes the request from the queue. Returns `false` if it is already in flight.
    pub(super) fn withdraw(&self) -> bool {
        let mut state = self.queue.lock();
        let index = state.requests.binary_search_by_key(&self.number, |(number, _)| *number);
        let request = index.ok().and_then(|index| state.requests.remove(index));
        drop(state);
        request.is_some()
    }
}

impl<R> Drop for Ticket<R> {
    fn drop(&mut self) {
        self.withdraw();
    }
}
