//! State of one connection, which its own task and its worker share. ADR 0003 draws the states. Every state has a
//! timeout, and most end at a limit or when the server stops ([`connections`](super::connections)).

use std::{
    cell::{Cell, OnceCell},
    future::poll_fn,
    io,
    net::SocketAddr,
    rc::Rc,
    task::{Poll, Waker},
    time::Duration,
};

use thiserror::Error;
use tokio::time::Instant;

use crate::{
    addresses::{Address, Addresses},
    limits::ConnectionLimits,
    socket::Socket,
};

/// Time for which input is dropped after the final response.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that acknowledges fewer bytes of a response in [`STALL_TIME`] makes no progress.
const MIN_PROGRESS: u64 = 1024;

/// See [`MIN_PROGRESS`].
const STALL_TIME: Duration = Duration::from_secs(2);

/// Stage of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Serving,
    /// Every response says `Connection: close`, here and in the later stages.
    Draining,
    /// Connections are closed that were idle for this time.
    Stopping {
        idle_grace: Duration,
    },
    /// Every connection is closed.
    Aborting,
}

impl Stage {
    /// Returns whether connections are accepted.
    pub(crate) fn accepts(self) -> bool {
        matches!(self, Self::Serving | Self::Draining)
    }
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// TLS is negotiated.
    Handshake,
    /// No byte of a request has arrived since the last response.
    Idle,
    /// A head is arriving, or the first one is expected.
    Head,
    /// A body is arriving. The application does not have the request yet.
    Body,
    /// The application has the request.
    Request,
    /// The response is being sent.
    Response,
    /// The final response is sent. Input is dropped.
    Closing,
}

/// Why a connection ends without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum End {
    #[error("the client has closed or reset the connection")]
    Client,
    /// The timeout of the state has passed.
    #[error("timeout")]
    Timeout,
    #[error("closed to make room for others")]
    Limit(ConnectionLimit),
    #[error("the server stops")]
    Stop,
}

/// The limit because of which a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionLimit {
    MaxConnections,
    MaxUnsentBytes,
}

impl ConnectionLimit {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MaxConnections => "max_connections",
            Self::MaxUnsentBytes => "max_unsent_bytes",
        }
    }
}

/// The last progress of a client that reads a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub(super) at: Instant,
    /// Number of bytes that the client had acknowledged then.
    acknowledged: u64,
}

/// A connection, as its own task and its worker see it.
pub(crate) struct Connection {
    /// Address of the client. IPv4 in IPv6 form is IPv4, so that a client has one address whatever the listener is.
    pub(super) peer: Option<SocketAddr>,
    pub(super) address: Rc<Address>,
    /// Set before the first byte is read.
    pub(super) socket: OnceCell<Socket>,
    pub(super) state: Cell<State>,
    /// Start of the state.
    pub(super) since: Cell<Instant>,
    /// Start of the timeout: that of the state, or the last byte that was written of a response.
    pub(super) last_progress: Cell<Instant>,
    /// Measured while the worker has its maximum of connections.
    pub(super) progress: Cell<Progress>,
    /// Bytes that the response holds for this connection alone.
    pub(super) held_bytes: Cell<usize>,
    pub(super) end: Cell<Option<End>>,
    task: OnceCell<Waker>,
}

impl Connection {
    pub(super) fn new(peer: Option<SocketAddr>, addresses: &Addresses) -> Self {
        let peer = peer.map(|peer| SocketAddr::new(peer.ip().to_canonical(), peer.port()));
        let now = Instant::now();
        Self {
            peer,
            address: addresses.add(peer),
            socket: OnceCell::new(),
            state: Cell::new(State::Head),
            since: Cell::new(now),
            last_progress: Cell::new(now),
            progress: Cell::new(Progress {
                at: now,
                acknowledged: 0,
            }),
            held_bytes: Cell::default(),
            end: Cell::default(),
            task: OnceCell::new(),
        }
    }

    /// Ends the connection, unless its task finds that a request has arrived.
    pub(super) fn close(&self, end: End) {
        self.end.set(Some(end));
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }

    /// Measures the progress of a client that reads a response. Any other state, and a table that is not full, is
    /// progress.
    pub(super) fn measure(&self, is_full: bool, now: Instant) {
        let is_reading = is_full && self.state.get() == State::Response;
        let acknowledged = match self.socket.get() {
            Some(socket) if is_reading => socket.acknowledged(),
            _ => 0,
        };
        if !is_reading || acknowledged >= self.progress.get().acknowledged + MIN_PROGRESS {
            self.progress.set(Progress {
                at: now,
                acknowledged,
            });
        }
    }

    /// Returns whether the client has a response and makes no progress.
    pub(super) fn is_stalled(&self) -> bool {
        self.state.get() == State::Response && self.progress.get().at.elapsed() >= STALL_TIME
    }

    /// Discards a response that the client has not received completely.
    pub(super) fn discard_response(&self) {
        if self.state.get() == State::Response
            && let Some(socket) = self.socket.get()
        {
            socket.discard_at_close();
        }
    }

    /// Why the connection has to end now, if it has: its timeout has passed, or the server stops.
    pub(super) fn due_end(
        &self,
        limits: &ConnectionLimits,
        stage: Stage,
        stop_began: Instant,
        now: Instant,
    ) -> Option<End> {
        let since = self.since.get();
        // The rest of a head gets the whole time from the start of the stop.
        let waiting_since = since.max(stop_began);
        let (timeout, idle_since) = match self.state.get() {
            State::Handshake => (limits.handshake_timeout, Some(waiting_since)),
            State::Idle => (limits.keep_alive, Some(since)),
            State::Head => (limits.head_timeout, Some(waiting_since)),
            State::Body => (limits.body_timeout, None),
            State::Request | State::Response => (limits.answer_timeout, None),
            State::Closing => (CLOSING_TIMEOUT, Some(waiting_since)),
        };
        match stage {
            Stage::Aborting => Some(End::Stop),
            Stage::Stopping { idle_grace }
                if idle_since.is_some_and(|since| now - since >= idle_grace) =>
            {
                Some(End::Stop)
            }
            _ => (now - self.last_progress.get() >= timeout).then_some(End::Timeout),
        }
    }

    /// Resolves when the connection ends. Its end wakes the task, which is the same for its whole life.
    pub(super) async fn ended(&self) -> End {
        poll_fn(|context| {
            self.task.get_or_init(|| context.waker().clone());
            self.end.get().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Returns the result of an operation on the stream, unless the connection ends before.
    pub(super) async fn unless_ended<R>(
        &self,
        operation: impl Future<Output = io::Result<R>>,
    ) -> Result<R, End> {
        tokio::select! {
            biased;
            result = operation => result.map_err(|_| End::Client),
            end = self.ended() => Err(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_peer_with_ipv4_in_ipv6_form_has_its_ipv4_address() {
        for (peer, expected) in [
            ("[::ffff:192.0.2.9]:80", "192.0.2.9:80"),
            ("192.0.2.9:80", "192.0.2.9:80"),
            ("[2001:db8::9]:80", "[2001:db8::9]:80"),
        ] {
            let peer_address = Some(peer.parse().expect("an address"));
            let connection = Connection::new(peer_address, &Addresses::new(Arc::new(Some)));
            assert_eq!(
                connection.peer,
                Some(expected.parse().expect("an address")),
                "{peer}"
            );
        }
    }
}
