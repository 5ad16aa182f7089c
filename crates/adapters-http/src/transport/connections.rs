//! The connections of one worker: their number, their timeouts, and which of them end to make room for others.

#[cfg(test)]
pub(super) mod tests;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix_http::ServiceConfig;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};

use super::connection::{Connection, End, Stage, State};
use crate::{limits::Limits, metrics::ConnectionLimit, middleware::request_log::RequestLog};

/// Interval in which the timeouts are checked. A timer for each connection would cost memory, and time with each
/// request.
const INTERVAL: Duration = Duration::from_millis(200);

/// The same while the server stops.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// Time after which a client that only reads its response makes room for others.
const READING_TIME: Duration = Duration::from_mins(1);

/// The largest list takes a tenth of it.
const MIN_HELD_BYTES: usize = 1024 * 1024;

/// The connections of one worker.
pub(crate) struct Connections {
    pub(super) log: Rc<RequestLog>,
    pub(super) limits: Limits,
    /// Contains the date of responses.
    pub(super) config: ServiceConfig,
    open: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next_id: Cell<u64>,
    /// Sum of the bytes that responses hold.
    held_bytes: Cell<usize>,
    load: Arc<AtomicUsize>,
    /// Stage of the server. The first value is the only one that this receiver sees as unchanged.
    stages: watch::Receiver<Stage>,
    /// A connection has ended or can make room.
    room: Notify,
}

/// An open connection among those of its worker, until it is dropped.
pub(crate) struct Slot {
    id: u64,
    pub(super) connections: Rc<Connections>,
    pub(super) connection: Rc<Connection>,
}

impl Connections {
    /// Creates the connections of one of the workers that share these limits.
    pub(crate) fn new(
        limits: &Limits,
        log: Rc<RequestLog>,
        load: Arc<AtomicUsize>,
        stages: watch::Receiver<Stage>,
    ) -> Rc<Self> {
        Rc::new(Self {
            log,
            limits: limits.clone(),
            config: ServiceConfig::default(),
            open: RefCell::default(),
            next_id: Cell::default(),
            held_bytes: Cell::default(),
            load,
            stages,
            room: Notify::new(),
        })
    }

    /// Returns whether connections go on after a response.
    pub(super) fn is_serving(&self) -> bool {
        !matches!(self.stages.has_changed(), Ok(true))
    }

    fn is_full(&self) -> bool {
        self.open.borrow().len() >= self.limits.connections_per_worker()
    }

    /// Waits for a slot.
    pub(crate) async fn admit(self: &Rc<Self>, peer: Option<SocketAddr>) -> Slot {
        self.log.metrics.connections_accepted.inc();
        self.log.metrics.connections_open.inc();
        while self.is_full() {
            self.make_room();
            // A reader can be old enough later.
            let _ = timeout(INTERVAL, self.room.notified()).await;
        }
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let connection = Rc::new(Connection::new(peer));
        self.open.borrow_mut().insert(id, Rc::clone(&connection));
        Slot {
            id,
            connections: Rc::clone(self),
            connection,
        }
    }

    /// Ends the oldest connection that only drops input; without one, the oldest without a complete request; without
    /// one, the oldest whose client has only been reading its response for [`READING_TIME`].
    fn make_room(&self) {
        let rank = |connection: &Connection| match connection.state.get() {
            State::Closing => Some(0),
            State::Handshake | State::Idle | State::Head | State::Body => Some(1),
            State::Response if connection.since.get().elapsed() >= READING_TIME => Some(2),
            State::Request | State::Response => None,
        };
        let open = self.open.borrow();
        let ranked = open.values().filter_map(|connection| {
            Some(((rank(connection)?, connection.since.get()), connection))
        });
        if let Some((_, oldest)) = ranked.min_by_key(|(rank, _)| *rank) {
            oldest.close(End::Limit(ConnectionLimit::MaxConnections));
        }
    }

    /// Counts the bytes that a response holds. If all responses hold too much, ends the connection that has been
    /// sending for the longest time.
    pub(super) fn hold(&self, connection: &Connection, bytes: usize) {
        self.held_bytes.update(|sum| sum + bytes);
        connection.held_bytes.set(bytes);
        let max =
            (self.limits.max_unsent_bytes / self.limits.running_workers()).max(MIN_HELD_BYTES);
        let open = self.open.borrow();
        let holding = open
            .values()
            .filter(|connection| connection.end.get().is_none() && connection.held_bytes.get() > 0);
        if self.held_bytes.get() > max
            && let Some(oldest) = holding.min_by_key(|connection| connection.since.get())
        {
            oldest.close(End::Limit(ConnectionLimit::MaxUnsentBytes));
        }
    }

    pub(super) fn release(&self, connection: &Connection) {
        let bytes = connection.held_bytes.take();
        self.held_bytes.update(|sum| sum - bytes);
    }

    /// Ends connections at their timeouts, and at the stages of the server. Never resolves.
    pub(crate) async fn watch(self: Rc<Self>) {
        let (mut stages, mut stop_began) = (self.stages.clone(), None);
        loop {
            let stage = *stages.borrow_and_update();
            if !stage.accepts() {
                stop_began.get_or_insert_with(Instant::now);
            }
            let now = Instant::now();
            for connection in self.open.borrow().values() {
                if let Some(end) =
                    connection.due_end(&self.limits, stage, stop_began.unwrap_or(now), now)
                    && connection.end.get().is_none()
                {
                    connection.close(end);
                }
            }
            let interval = if stage.accepts() {
                INTERVAL
            } else {
                STOP_INTERVAL
            };
            tokio::select! {
                Ok(()) = stages.changed() => {}
                () = sleep(interval) => {}
            }
        }
    }

    /// Resolves when every connection is closed.
    pub(crate) async fn closed(&self) {
        while !self.open.borrow().is_empty() {
            self.room.notified().await;
        }
    }
}

impl Slot {
    /// Changes the state of the connection. A request that has arrived meanwhile keeps the connection open.
    pub(super) fn enter(&self, state: State) {
        let now = Instant::now();
        self.connection.state.set(state);
        self.connection.since.set(now);
        self.connection.last_progress.set(now);
        self.connection.end.set(None);
        if matches!(state, State::Idle | State::Closing) && self.connections.is_full() {
            self.connections.room.notify_one();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.open.borrow_mut().remove(&self.id);
        self.connections.release(&self.connection);
        let metrics = &self.connections.log.metrics;
        if let Some(End::Limit(limit)) = self.connection.end.get() {
            metrics.connections_refused[limit as usize].inc();
        }
        metrics.connections_open.dec();
        self.connections.load.fetch_sub(1, Ordering::Relaxed);
        self.connections.room.notify_one();
    }
}
