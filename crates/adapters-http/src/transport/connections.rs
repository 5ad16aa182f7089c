//! The connections of one worker, and which of them are closed to make room for others.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{connection::Connection, response_progress::WorkerState};
use crate::{limits::Limits, metrics::ConnectionLimit, middleware::request_log::RequestLog};

/// Stage of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Serving,
    /// Connections are closed that were idle for this time.
    Stopping {
        idle_grace: Duration,
    },
    /// Every connection is closed.
    Aborting,
}

/// Interval in which idle connections are closed while the server stops.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// The largest list takes a tenth of it.
const MIN_HELD_BYTES: usize = 1024 * 1024;

/// The connections of one worker.
pub(crate) struct Connections {
    pub(super) log: Rc<RequestLog>,
    max_open: usize,
    max_held_bytes: usize,
    max_body_bytes: usize,
    open: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next_id: Cell<u64>,
    is_draining: Arc<AtomicBool>,
    state: Rc<WorkerState>,
}

/// An open connection among those of its worker, until it is dropped.
pub(crate) struct Slot {
    id: u64,
    connections: Rc<Connections>,
    pub(super) connection: Rc<Connection>,
}

impl Connections {
    /// Creates the connections of one of the workers that share these limits.
    pub(crate) fn new(limits: &Limits, workers: usize, log: Rc<RequestLog>, is_draining: Arc<AtomicBool>) -> Rc<Self> {
        Rc::new(Self {
            log,
            max_open: limits.max_connections / workers,
            max_held_bytes: (limits.max_unsent_bytes / workers).max(MIN_HELD_BYTES),
            max_body_bytes: limits.max_body_bytes,
            open: RefCell::default(),
            next_id: Cell::default(),
            is_draining,
            state: Rc::default(),
        })
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Waits for a slot. The oldest connection without work makes room: one that only drops input, otherwise one that
    /// has no request. The oldest is closed, because a new client has not sent its request yet.
    pub(crate) async fn admit(self: Rc<Self>, peer: Option<SocketAddr>) -> Slot {
        loop {
            let (ended, idle) = (self.state.ended.notified(), self.state.idle.notified());
            if self.open.borrow().len() < self.max_open {
                break;
            }
            let limit = ConnectionLimit::MaxConnections;
            if self.close_oldest(limit, Connection::drops_input) || self.close_oldest(limit, Connection::has_no_request)
            {
                ended.await;
            } else {
                tokio::select! { () = ended => {} () = idle => {} }
            }
        }
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let connection = Rc::new(Connection::new(peer, self.max_body_bytes as u64, Rc::clone(&self.state)));
        self.open.borrow_mut().insert(id, Rc::clone(&connection));
        Slot { id, connections: self, connection }
    }

    /// Closes the connection that has been sending for the longest time if the bodies of all responses hold too much.
    pub(super) fn limit_held_bytes(&self) {
        if self.state.held_bytes.get() > self.max_held_bytes {
            self.close_oldest(ConnectionLimit::MaxUnsentBytes, |connection| connection.response.held_bytes() > 0);
        }
    }

    /// Returns whether there is such a connection.
    fn close_oldest(&self, limit: ConnectionLimit, applies: impl Fn(&Connection) -> bool) -> bool {
        let open = self.open.borrow();
        let oldest = open.values().filter(|c| !c.is_closed() && applies(c)).min_by_key(|c| c.response.since());
        oldest.inspect(|connection| connection.close(Some(limit))).is_some()
    }

    fn close_all(&self, applies: impl Fn(&Connection) -> bool) {
        self.open.borrow().values().filter(|c| !c.is_closed() && applies(c)).for_each(|c| c.close(None));
    }

    /// Follows the stages of the server until its end.
    pub(crate) async fn follow(self: Rc<Self>, mut stage: watch::Receiver<Stage>) {
        let mut stopping = None;
        loop {
            let current = *stage.borrow_and_update();
            let changed = match current {
                Stage::Serving => stage.changed().await,
                Stage::Stopping { idle_grace } => {
                    let start = *stopping.get_or_insert_with(Instant::now);
                    self.close_all(|c| {
                        // The rest of a head gets the whole time from the start of the stop.
                        let since = if c.is_idle() { c.response.since() } else { start.max(c.response.since()) };
                        c.can_be_closed() && since.elapsed() >= idle_grace
                    });
                    tokio::select! {
                        changed = stage.changed() => changed,
                        () = sleep(STOP_INTERVAL) => Ok(()),
                    }
                }
                Stage::Aborting => {
                    self.close_all(|_| true);
                    stage.changed().await
                }
            };
            if changed.is_err() {
                return;
            }
        }
    }
}

impl Slot {
    pub(super) fn log(&self) -> &RequestLog {
        &self.connections.log
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.open.borrow_mut().remove(&self.id);
        if let Some(limit) = self.connection.limit() {
            self.connections.log.metrics.refuse_connection(limit);
        }
        self.connections.state.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use actix_http::Request;
    use futures_util::FutureExt;
    use tracing::Level;

    use super::*;
    use crate::{LoggedRequests, RequestLogFilter};

    fn connections(max_connections: usize) -> Rc<Connections> {
        let logged = RequestLogFilter::new(LoggedRequests::All);
        let log = RequestLog { level: Level::INFO, logged, metrics: Arc::default() };
        Connections::new(&Limits { max_connections, ..Limits::MINIMAL }, 1, Rc::new(log), Arc::default())
    }

    #[tokio::test]
    async fn if_a_request_keeps_the_oldest_connection_open_the_next_makes_room() {
        let connections = connections(2);
        let oldest = Rc::clone(&connections).admit(None).await;
        let next = Rc::clone(&connections).admit(None).await;
        let mut admission = pin!(Rc::clone(&connections).admit(None));

        assert!(admission.as_mut().now_or_never().is_none());
        assert!(oldest.connection.is_closed() && !next.connection.is_closed());
        oldest.connection.start_request(&Request::new());
        oldest.connection.keep_open();
        assert!(admission.as_mut().now_or_never().is_none());
        assert!(!oldest.connection.is_closed() && next.connection.is_closed());

        drop(next);
        assert!(admission.now_or_never().is_some());
    }

    #[tokio::test]
    async fn beyond_the_maximum_of_held_bytes_a_connection_that_holds_some_is_closed() {
        let connections = connections(2);
        let idle = Rc::clone(&connections).admit(None).await;
        let sending = Rc::clone(&connections).admit(None).await;
        for (bytes, is_closed) in [(1_048_576, false), (1_048_576, false), (1_048_577, true)] {
            sending.connection.response.hold(bytes);
            connections.limit_held_bytes();
            assert_eq!((idle.connection.is_closed(), sending.connection.is_closed()), (false, is_closed), "{bytes}");
            sending.connection.response.end_body();
        }
    }
}
