//! The connections of one worker: their number, their timeouts, and which of them end to make room for others.

#[cfg(test)]
pub(crate) mod tests;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::SocketAddr,
    ops::Deref,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix_http::{ServiceConfig, h1::Codec};
use tokio::{
    sync::{Mutex, Notify, watch},
    time::{Instant, sleep, timeout},
};

use crate::{
    addresses::Addresses,
    connection::{Connection, End, Stage, State},
    settings::ServerSettings,
};

/// Interval in which the timeouts are checked. A timer for each connection would cost memory, and time with each
/// request.
const INTERVAL: Duration = Duration::from_millis(200);

/// The same while the server stops.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// The largest list takes a tenth of it.
const MIN_HELD_BYTES: usize = 1024 * 1024;

/// The connections of one worker.
pub(crate) struct Pool {
    pub(crate) settings: ServerSettings,
    /// One connection at a time takes a step of its TLS handshake.
    pub(crate) handshake_turn: Mutex<()>,
    /// Contains the date of responses. Its clock runs while there are connections.
    config: RefCell<Option<ServiceConfig>>,
    open: RefCell<BTreeMap<u64, Rc<Connection>>>,
    addresses: Addresses,
    next_id: Cell<u64>,
    /// Sum of the bytes that responses hold.
    held_bytes: Cell<usize>,
    load: Arc<AtomicUsize>,
    stages: watch::Receiver<Stage>,
    /// A connection is admitted.
    admitted: Notify,
    /// `admit` has to look again: a connection has ended, can make room, or was chosen and got a request first.
    room: Notify,
}

/// A place in the pool, which its connection has until it is dropped.
pub(crate) struct Slot {
    id: u64,
    pub(crate) pool: Rc<Pool>,
    connection: Rc<Connection>,
}

impl Pool {
    /// Creates the connections of one of the workers that share these settings.
    pub(crate) fn new(
        settings: ServerSettings,
        load: Arc<AtomicUsize>,
        stages: watch::Receiver<Stage>,
    ) -> Rc<Self> {
        Rc::new(Self {
            addresses: Addresses::new(Arc::clone(&settings.share_of)),
            settings,
            handshake_turn: Mutex::default(),
            config: RefCell::default(),
            open: RefCell::default(),
            next_id: Cell::default(),
            held_bytes: Cell::default(),
            load,
            stages,
            admitted: Notify::new(),
            room: Notify::new(),
        })
    }

    /// Returns a codec without a request.
    pub(crate) fn codec(&self) -> Codec {
        Codec::new(self.config.borrow_mut().get_or_insert_default().clone())
    }

    /// Returns whether connections go on after a response.
    pub(crate) fn is_serving(&self) -> bool {
        *self.stages.borrow() == Stage::Serving
    }

    fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    fn is_full(&self) -> bool {
        self.open.borrow().len() >= self.settings.limits.connections_per_worker()
    }

    /// Waits for a slot. A peer with IPv4 in IPv6 form has its IPv4 address, whatever the listener is.
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
        let peer = peer.map(|peer| SocketAddr::new(peer.ip().to_canonical(), peer.port()));
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let connection = Rc::new(Connection::new(peer, self.addresses.add(peer)));
        self.open.borrow_mut().insert(id, Rc::clone(&connection));
        self.admitted.notify_one();
        Slot {
            id,
            pool: Rc::clone(self),
            connection,
        }
    }

    /// Counts a connection that found every slot taken, and warns of that.
    fn note_full(&self) {
        self.settings.metrics.full.inc();
        if self.settings.metrics.full_warnings.admits(()) {
            let busiest = self.addresses.busiest();
            tracing::warn!(
                address = busiest.as_ref().map(|busiest| display(busiest.address)),
                connections = busiest.as_ref().map(|busiest| busiest.connections),
                "a worker has its maximum of connections: idle ones and those without progress are closed, \
                 first those of the address that has the most"
            );
        }
    }

    /// Ends the connection that makes room first, if any can.
    fn make_room(&self) {
        let open = self.open.borrow();
        let candidates = open
            .values()
            .filter_map(|connection| Some((connection.room()?, connection)));
        if let Some((_, first)) = candidates.min_by_key(|(room, _)| *room) {
            first.close(End::MaxConnections);
        }
    }

    /// Ends the connection that has been sending for the longest time, of those that hold bytes of a response.
    fn end_longest_response(&self) {
        let open = self.open.borrow();
        let holding = open
            .values()
            .filter(|connection| connection.end().is_none() && connection.held_bytes() > 0);
        if let Some(oldest) = holding.min_by_key(|connection| connection.since()) {
            oldest.close(End::MaxUnsentBytes);
        }
    }

    /// Ends connections at their timeouts, and at the stages of the server. Never resolves.
    pub(crate) async fn watch(self: Rc<Self>) {
        let mut stages = self.stages.clone();
        loop {
            let stage = *stages.borrow_and_update();
            self.check(stage);
            let interval = if stage.accepts() {
                INTERVAL
            } else {
                STOP_INTERVAL
            };
            let next_check = async {
                // Without connections, there are no timeouts.
                if self.is_empty() {
                    self.admitted.notified().await;
                }
                sleep(interval).await;
            };
            tokio::select! {
                Ok(()) = stages.changed() => {}
                () = next_check => {}
            }
        }
    }

    fn check(&self, stage: Stage) {
        let now = Instant::now();
        let is_full = self.is_full();
        for connection in self.open.borrow().values() {
            connection.measure(is_full, now);
            connection.end_if_due(&self.settings.limits, stage, now);
        }
    }

    /// Resolves when every connection is closed.
    pub(crate) async fn closed(&self) {
        while !self.is_empty() {
            self.room.notified().await;
        }
    }
}

impl Slot {
    pub(crate) fn connection(&self) -> Rc<Connection> {
        Rc::clone(&self.connection)
    }

    /// Changes the state of the connection, which cancels a pending end. If the pool is full, this connection can make
    /// room now, or the one that was chosen goes on.
    pub(crate) fn enter(&self, state: State) {
        let was_chosen = self.connection.end().is_some();
        self.connection.set_state(state);
        let can_make_room = matches!(state, State::Idle | State::Closing);
        if (was_chosen || can_make_room) && self.pool.is_full() {
            self.pool.room.notify_one();
        }
    }

    /// Counts the bytes that the response holds. If all responses hold too much, one of them is ended.
    pub(crate) fn hold(&self, bytes: usize) {
        let before = self.connection.replace_held_bytes(bytes);
        self.pool.held_bytes.update(|sum| sum - before + bytes);
        let limits = &self.pool.settings.limits;
        let share = limits.max_unsent_bytes / limits.running_workers();
        if self.pool.held_bytes.get() > share.max(MIN_HELD_BYTES) {
            self.pool.end_longest_response();
        }
    }

    /// The response holds no bytes any more.
    pub(crate) fn release(&self) {
        let before = self.connection.replace_held_bytes(0);
        self.pool.held_bytes.update(|sum| sum - before);
    }
}

impl Deref for Slot {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let pool = &self.pool;
        let connection = &self.connection;
        self.release();
        pool.open.borrow_mut().remove(&self.id);
        pool.addresses
            .remove(connection.peer(), connection.address());
        if pool.is_empty() {
            pool.config.take();
        }
        let metrics = &pool.settings.metrics;
        let limit = match connection.end() {
            Some(End::MaxConnections) => Some(&metrics.max_connections),
            Some(End::MaxUnsentBytes) => Some(&metrics.max_unsent_bytes),
            _ => None,
        };
        if let Some(refused) = limit {
            refused.inc();
            connection.discard_response();
        }
        metrics.open.dec();
        pool.load.fetch_sub(1, Ordering::Relaxed);
        pool.room.notify_one();
    }
}
