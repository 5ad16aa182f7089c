//! The connections of one worker: their number, their timeouts, and which of them end to make room for others.

#[cfg(test)]
pub(super) mod tests;

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
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
    sync::{Mutex, Notify, watch},
    time::{Instant, sleep, timeout},
};

use crate::{
    addresses::Addresses,
    connection::{Connection, ConnectionLimit, End, Stage, State},
    server::ServerSettings,
    socket::Socket,
};

/// Interval in which the timeouts are checked. A timer for each connection would cost memory, and time with each
/// request.
const INTERVAL: Duration = Duration::from_millis(200);

/// The same while the server stops.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// The largest list takes a tenth of it.
const MIN_HELD_BYTES: usize = 1024 * 1024;

/// The connections of one worker.
pub(crate) struct Connections {
    pub(super) settings: ServerSettings,
    /// Contains the date of responses.
    pub(super) config: ServiceConfig,
    open: RefCell<BTreeMap<u64, Rc<Connection>>>,
    addresses: Addresses,
    /// One connection at a time takes a step of its TLS handshake.
    pub(super) handshake_turn: Mutex<()>,
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
    /// Creates the connections of one of the workers that share these settings.
    pub(crate) fn new(
        settings: ServerSettings,
        load: Arc<AtomicUsize>,
        stages: watch::Receiver<Stage>,
    ) -> Rc<Self> {
        Rc::new(Self {
            config: ServiceConfig::default(),
            open: RefCell::default(),
            addresses: Addresses::new(Arc::clone(&settings.share_of)),
            settings,
            handshake_turn: Mutex::default(),
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
        self.open.borrow().len() >= self.settings.limits.connections_per_worker()
    }

    /// Waits for a slot.
    pub(crate) async fn admit(self: &Rc<Self>, peer: Option<SocketAddr>) -> Slot {
        self.settings.metrics.accepted.inc();
        self.settings.metrics.open.inc();
        if self.is_full() {
            self.note_full();
        }
        while self.is_full() {
            self.make_room();
            // A client can make no progress later.
            let _ = timeout(INTERVAL, self.room.notified()).await;
        }
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let connection = Rc::new(Connection::new(peer, &self.addresses));
        self.open.borrow_mut().insert(id, Rc::clone(&connection));
        Slot {
            id,
            connections: Rc::clone(self),
            connection,
        }
    }

    /// Counts a connection that found the table full, and warns of that.
    fn note_full(&self) {
        self.settings.metrics.full.inc();
        if self.settings.metrics.full_warnings.admits(()) {
            let busiest = self.addresses.busiest();
            tracing::warn!(
                address = busiest.map(|(address, _)| display(address)),
                connections = busiest.map(|(_, connections)| connections),
                "a worker has its maximum of connections: idle ones and those without progress are closed, \
                 first those of the address that has the most"
            );
        }
    }

    /// Ends the oldest connection that only drops input; without one, the oldest without a complete request; without
    /// one, a connection whose client makes no progress with its response: of the address with the most connections,
    /// the one whose last progress is the oldest.
    fn make_room(&self) {
        let rank = |connection: &Connection| match connection.state.get() {
            State::Closing => Some((0, Reverse(0), connection.since.get())),
            State::Handshake | State::Idle | State::Head | State::Body => {
                Some((1, Reverse(0), connection.since.get()))
            }
            State::Response if connection.is_stalled() => {
                let share = Rc::strong_count(&connection.address);
                Some((2, Reverse(share), connection.progress.get().at))
            }
            State::Request | State::Response => None,
        };
        let open = self.open.borrow();
        let ranked = open
            .values()
            .filter_map(|connection| Some((rank(connection)?, connection)));
        if let Some((_, first)) = ranked.min_by_key(|(rank, _)| *rank) {
            first.close(End::Limit(ConnectionLimit::MaxConnections));
        }
    }

    /// Counts the bytes that a response holds. If all responses hold too much, ends the connection that has been
    /// sending for the longest time.
    pub(super) fn hold(&self, connection: &Connection, bytes: usize) {
        self.held_bytes.update(|sum| sum + bytes);
        connection.held_bytes.set(bytes);
        let max = (self.settings.limits.max_unsent_bytes / self.settings.limits.running_workers())
            .max(MIN_HELD_BYTES);
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
            let is_full = self.is_full();
            for connection in self.open.borrow().values() {
                connection.measure(is_full, now);
                if let Some(end) =
                    connection.due_end(&self.settings.limits, stage, stop_began.unwrap_or(now), now)
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
    /// Shows the socket of the connection to its worker.
    pub(crate) fn attach(&self, socket: Socket) {
        let _ = self.connection.socket.set(socket);
    }

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
        let connection = &self.connection;
        self.connections.open.borrow_mut().remove(&self.id);
        self.connections
            .addresses
            .remove(connection.peer, &connection.address);
        self.connections.release(connection);
        let metrics = &self.connections.settings.metrics;
        if let Some(End::Limit(limit)) = connection.end.get() {
            metrics.refused(limit).inc();
            connection.discard_response();
        }
        metrics.open.dec();
        self.connections.load.fetch_sub(1, Ordering::Relaxed);
        self.connections.room.notify_one();
    }
}
