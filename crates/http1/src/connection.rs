//! State of one connection, which its task changes and its worker examines. ADR 0003 draws the states. Every state has a
//! timeout, and most end at a limit or when the server stops ([`pool`](super::pool)).

use std::{
    cell::{Cell, OnceCell},
    cmp::Reverse,
    future::poll_fn,
    io,
    net::SocketAddr,
    rc::Rc,
    task::{Poll, Waker},
    time::Duration,
};

use thiserror::Error;
use tokio::time::Instant;

use crate::{addresses::Address, limits::ConnectionLimits, socket::Socket};

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
        since: Instant,
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

impl State {
    fn timeout(self, limits: &ConnectionLimits) -> Duration {
        match self {
            Self::Handshake => limits.handshake_timeout,
            Self::Idle => limits.keep_alive,
            Self::Head => limits.head_timeout,
            Self::Body => limits.body_timeout,
            Self::Request | Self::Response => limits.response_timeout,
            Self::Closing => CLOSING_TIMEOUT,
        }
    }
}

/// Why a connection ends without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum End {
    #[error("the client has closed or reset the connection")]
    Client,
    /// The timeout of the state has passed.
    #[error("timeout")]
    Timeout,
    /// The worker has its maximum of connections.
    #[error("closed to make room for others")]
    MaxConnections,
    /// Responses hold too many bytes.
    #[error("closed to bound the bytes that are not sent")]
    MaxUnsentBytes,
    #[error("the server stops")]
    Stop,
}

/// Which connection makes room for others: the least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// It only drops input. The oldest comes first.
    Closing(Instant),
    /// It has no complete request. The oldest comes first.
    Receiving(Instant),
    /// Its client makes no progress with its response. First comes the address with the most connections, then the
    /// client whose last progress is the oldest.
    Stalled {
        connections: Reverse<usize>,
        last_progress: Instant,
    },
}

/// A connection, as its own task and its worker see it.
pub(crate) struct Connection {
    peer: Option<SocketAddr>,
    address: Rc<Address>,
    /// Set before the first byte is read.
    socket: OnceCell<Socket>,
    state: Cell<State>,
    /// Start of the state.
    since: Cell<Instant>,
    /// Start of the timeout: that of the state, or the last byte that was written of a response.
    last_activity: Cell<Instant>,
    /// Last progress of a client that reads its response. Measured while the worker has its maximum of connections.
    progress: Cell<Instant>,
    /// Number of bytes that the client had acknowledged then.
    acknowledged: Cell<u64>,
    /// Bytes that the response holds for this connection alone.
    held_bytes: Cell<usize>,
    end: Cell<Option<End>>,
    task: OnceCell<Waker>,
}

impl Connection {
    pub(crate) fn new(peer: Option<SocketAddr>, address: Rc<Address>) -> Self {
        let now = Instant::now();
        Self {
            peer,
            address,
            socket: OnceCell::new(),
            state: Cell::new(State::Head),
            since: Cell::new(now),
            last_activity: Cell::new(now),
            progress: Cell::new(now),
            acknowledged: Cell::default(),
            held_bytes: Cell::default(),
            end: Cell::default(),
            task: OnceCell::new(),
        }
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub(crate) fn address(&self) -> &Rc<Address> {
        &self.address
    }

    pub(crate) fn state(&self) -> State {
        self.state.get()
    }

    pub(crate) fn since(&self) -> Instant {
        self.since.get()
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.get()
    }

    /// Returns the number of bytes that the response held before.
    pub(crate) fn replace_held_bytes(&self, bytes: usize) -> usize {
        self.held_bytes.replace(bytes)
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.end.get()
    }

    /// Shows the socket to the worker.
    pub(crate) fn attach(&self, socket: Socket) {
        let _ = self.socket.set(socket);
    }

    /// Changes the state. A request that has arrived meanwhile keeps the connection open.
    pub(crate) fn set_state(&self, state: State) {
        let now = Instant::now();
        self.state.set(state);
        self.since.set(now);
        self.last_activity.set(now);
        self.end.set(None);
    }

    /// Starts the timeout of the state again, because the client has taken a part of its response.
    pub(crate) fn extend_timeout(&self) {
        self.last_activity.set(Instant::now());
    }

    /// Ends the connection, unless its task finds that a request has arrived.
    pub(crate) fn close(&self, end: End) {
        self.end.set(Some(end));
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }

    /// Measures the progress of a client that reads a response. Any other state, and a table that is not full, is
    /// progress.
    pub(crate) fn measure(&self, is_full: bool, now: Instant) {
        let is_reading = is_full && self.state.get() == State::Response;
        let acknowledged = match self.socket.get() {
            Some(socket) if is_reading => socket.acknowledged(),
            _ => 0,
        };
        if !is_reading || acknowledged >= self.acknowledged.get() + MIN_PROGRESS {
            self.progress.set(now);
            self.acknowledged.set(acknowledged);
        }
    }

    /// Returns the room that the connection can make, if it can.
    pub(crate) fn room(&self) -> Option<Room> {
        let since = self.since.get();
        let last_progress = self.progress.get();
        match self.state.get() {
            State::Closing => Some(Room::Closing(since)),
            State::Handshake | State::Idle | State::Head | State::Body => {
                Some(Room::Receiving(since))
            }
            State::Response if last_progress.elapsed() >= STALL_TIME => Some(Room::Stalled {
                connections: Reverse(Rc::strong_count(&self.address)),
                last_progress,
            }),
            State::Request | State::Response => None,
        }
    }

    /// Ends the connection if its timeout has passed or the server stops.
    pub(crate) fn end_if_due(&self, limits: &ConnectionLimits, stage: Stage, now: Instant) {
        let timeout = self.state.get().timeout(limits);
        let due = match stage {
            Stage::Aborting => Some(End::Stop),
            Stage::Stopping { since, idle_grace } if self.is_idle(since, idle_grace, now) => {
                Some(End::Stop)
            }
            _ => (now - self.last_activity.get() >= timeout).then_some(End::Timeout),
        };
        if let Some(end) = due
            && self.end.get().is_none()
        {
            self.close(end);
        }
    }

    /// Returns whether the connection has had no request for the idle grace of a stop. The rest of a head or of a
    /// handshake gets the whole time from the start of the stop.
    fn is_idle(&self, stop: Instant, idle_grace: Duration, now: Instant) -> bool {
        let since = self.since.get();
        match self.state.get() {
            State::Idle => now - since >= idle_grace,
            State::Handshake | State::Head | State::Closing => now - since.max(stop) >= idle_grace,
            State::Body | State::Request | State::Response => false,
        }
    }

    /// Discards a response that the client has not received completely.
    pub(crate) fn discard_response(&self) {
        if self.state.get() == State::Response
            && let Some(socket) = self.socket.get()
        {
            socket.discard_at_close();
        }
    }

    /// Resolves when the connection ends. Its end wakes the task, which is the same for its whole life.
    pub(crate) async fn ended(&self) -> End {
        poll_fn(|context| {
            self.task.get_or_init(|| context.waker().clone());
            self.end.get().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Returns the result of an operation on the stream, unless the connection ends before.
    pub(crate) async fn unless_ended<R>(
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
