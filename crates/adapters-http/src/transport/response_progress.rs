use std::{cell::Cell, rc::Rc};

use tokio::{sync::Notify, time::Instant};

/// State that all connections of a worker share.
#[derive(Default)]
pub(super) struct WorkerState {
    /// Sum of the bytes that the connections hold.
    pub(super) held_bytes: Cell<usize>,
    /// A connection has ended, or is not closed after all.
    pub(super) ended: Notify,
    /// A response was sent completely.
    pub(super) idle: Notify,
}

/// How much of the current response is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseState {
    /// There is no response to send.
    None,
    /// actix takes slices of the body.
    Body,
    /// actix has the body and writes the rest of it.
    Tail,
}

/// Progress of the current response of a connection.
pub(super) struct ResponseProgress {
    state: Cell<ResponseState>,
    /// Bytes that the body holds for this connection alone.
    held_bytes: Cell<usize>,
    /// Time since which the connection has its current response, or none.
    since: Cell<Instant>,
    worker: Rc<WorkerState>,
}

impl ResponseProgress {
    pub(super) fn new(worker: Rc<WorkerState>) -> Self {
        let (state, since) = (Cell::new(ResponseState::None), Cell::new(Instant::now()));
        Self { state, held_bytes: Cell::default(), since, worker }
    }

    pub(super) fn worker(&self) -> &WorkerState {
        &self.worker
    }

    /// Time since which the connection has its current response, or none.
    pub(super) fn since(&self) -> Instant {
        self.since.get()
    }

    pub(super) fn is_sending(&self) -> bool {
        self.state.get() != ResponseState::None
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.get()
    }

    pub(super) fn start(&self) {
        self.state.set(ResponseState::Body);
    }

    /// Records that the body holds this number of bytes for this connection alone.
    pub(super) fn hold(&self, bytes: usize) {
        self.since.set(Instant::now());
        self.held_bytes.set(bytes);
        self.worker.held_bytes.update(|sum| sum + bytes);
    }

    /// Records that actix has the whole body.
    pub(super) fn end_body(&self) {
        let held = self.held_bytes.take();
        self.worker.held_bytes.update(|sum| sum - held);
        if self.state.get() == ResponseState::Body {
            self.state.set(ResponseState::Tail);
        }
    }

    /// Records that the socket has everything that actix has written since this time. Returns whether that ends the
    /// response.
    pub(super) fn flushed(&self, since: Instant) -> bool {
        let ends = self.state.get() == ResponseState::Tail;
        if ends {
            self.state.set(ResponseState::None);
            self.since.set(since);
            self.worker.idle.notify_waiters();
        }
        ends
    }
}
