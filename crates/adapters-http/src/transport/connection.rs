//! State of one connection, shared by its stream, its current response and its worker.
//!
//! actix reads ahead: it parses the next request while the current one waits for its response, and properties of the
//! next request (HEAD, the version, `Connection: close`, an incomplete body) change that response. The phase therefore
//! decides which bytes actix receives: those of one request, and those of the next request only after the response.

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    net::{IpAddr, SocketAddr},
    rc::Rc,
    task::Waker,
};

use actix_http::{HttpMessage, Request};
use memchr::memchr;
use tokio::time::Instant;

use super::{
    framing::{HeadState, Section},
    phase::{FIRST_PHASE, HeadLimit, MAX_TARGET_BYTES, Phase},
    response_progress::{ResponseProgress, WorkerState},
};
use crate::{body::declared_length, metrics::ConnectionLimit};

/// Maximum size of a request head in bytes. actix would buffer 128 KiB for each connection.
const MAX_HEAD_BYTES: u64 = 32 * 1024;

/// Bytes for each byte of a chunked body: the most that chunks of one byte take.
const MAX_FRAMING: u64 = 6;

/// State of a connection.
pub(crate) struct Connection {
    /// IPv4 in IPv6 form is IPv4, so that a client has one address whatever the listener is.
    pub(crate) peer: Option<IpAddr>,
    phase: Cell<Phase>,
    /// Whether the application has the current request.
    has_request: Cell<bool>,
    /// Bytes of the current section up to here.
    section_bytes: Cell<u64>,
    max_body_bytes: u64,
    /// Whether the client may be waiting for a 100 before it sends the current body (RFC 9110, section 10.1.1).
    expects_continue: Cell<bool>,
    pub(super) response: ResponseProgress,
    is_closed: Cell<bool>,
    /// The limit because of which the connection is closed.
    limit: Cell<Option<ConnectionLimit>>,
    /// Whether the stream has bytes that wait for the next phase.
    has_next: Cell<bool>,
    task: RefCell<Option<Waker>>,
}

impl Connection {
    pub(super) fn new(peer: Option<SocketAddr>, max_body_bytes: u64, worker: Rc<WorkerState>) -> Self {
        Self {
            peer: peer.map(|peer| peer.ip().to_canonical()),
            phase: Cell::new(FIRST_PHASE),
            has_request: Cell::default(),
            section_bytes: Cell::default(),
            max_body_bytes,
            expects_continue: Cell::default(),
            response: ResponseProgress::new(worker),
            is_closed: Cell::default(),
            limit: Cell::default(),
            has_next: Cell::default(),
            task: RefCell::default(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Whether no byte of a request has arrived since the last response.
    pub(super) fn is_idle(&self) -> bool {
        self.phase.get() == FIRST_PHASE && !self.response.is_sending()
    }

    /// Whether the application has no request, and no response is being sent.
    pub(super) fn has_no_request(&self) -> bool {
        !self.has_request.get() && !self.response.is_sending()
    }

    /// Whether the connection has its response, and only drops input.
    pub(super) fn drops_input(&self) -> bool {
        matches!(self.phase.get(), Phase::Discarding(_) | Phase::Closing { .. }) && !self.response.is_sending()
    }

    /// Whether the connection may be closed without losing a request or a response.
    pub(super) fn can_be_closed(&self) -> bool {
        self.drops_input() || self.has_no_request()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub(super) fn limit(&self) -> Option<ConnectionLimit> {
        self.limit.get()
    }

    /// Closes the connection at its next poll, because of a limit or because the server stops.
    pub(super) fn close(&self, limit: Option<ConnectionLimit>) {
        self.is_closed.set(true);
        self.limit.set(limit);
        self.wake();
    }

    /// Keeps the connection open, because a request has arrived.
    pub(super) fn keep_open(&self) {
        self.is_closed.set(false);
        self.limit.set(None);
        self.response.worker().ended.notify_waiters();
    }

    /// Records that no more bytes are delivered.
    pub(super) fn end_input(&self) {
        self.phase.set(Phase::Closing { unread: true });
    }

    /// Remembers the task to wake. It is the same for the whole life of a connection.
    pub(super) fn remember_task(&self, waker: &Waker) {
        let mut task = self.task.borrow_mut();
        if task.as_ref().is_none_or(|task| !task.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    pub(super) fn set_next(&self, has_next: bool) {
        self.has_next.set(has_next);
    }

    fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Records that a head was parsed.
    pub(super) fn start_request(&self, request: &Request) {
        let body = match declared_length(request.headers()) {
            _ if request.chunked().unwrap_or(false) => Some(Section::CHUNKED_BODY),
            Some(length @ 1..) => Some(Section::Body(length)),
            _ => None,
        };
        self.section_bytes.set(0);
        self.has_request.set(true);
        self.expects_continue.set(request.head().expect());
        self.phase.set(body.map_or(Phase::Responding, Phase::Receiving));
        if body.is_some() && self.has_next.get() {
            self.wake();
        }
    }

    /// Prepares a response that comes before the end of the body: a small body is completed with filler.
    pub(super) fn fill_body(&self) {
        if let Phase::Receiving(Section::Body(missing)) = self.phase.get()
            && self.section_bytes.get() + missing <= self.max_body_bytes
            && !self.expects_continue.get()
        {
            self.phase.set(Phase::Filling { filler: missing, missing });
        }
    }

    /// Takes up to this number of bytes of filler.
    pub(super) fn take_filler(&self, max: usize) -> usize {
        let Phase::Filling { filler, missing } = self.phase.get() else { return 0 };
        let count = usize::try_from(filler).unwrap_or(max).min(max);
        self.phase.set(Phase::Filling { filler: filler - count as u64, missing });
        count
    }

    /// Bytes of filler that actix needs.
    pub(super) fn needed_filler(&self) -> u64 {
        match self.phase.get() {
            Phase::Filling { filler, .. } => filler,
            _ => 0,
        }
    }

    /// Records the response to the request. Returns whether it is the final one of the connection: if `is_final`, or if
    /// the rest of the body is too large to be discarded.
    pub(super) fn start_response(&self, is_final: bool) -> bool {
        let next = match self.phase.get() {
            Phase::Responding if !is_final => FIRST_PHASE,
            Phase::Filling { missing, .. } if !is_final => Phase::Discarding(Section::Body(missing)),
            Phase::Receiving(section @ Section::ChunkedBody { .. })
                if !is_final && self.may_discard(section) && !self.expects_continue.get() =>
            {
                Phase::Discarding(section)
            }
            Phase::Responding => Phase::Closing { unread: false },
            _ => Phase::Closing { unread: true },
        };
        if next == FIRST_PHASE {
            self.await_head();
        }
        self.phase.set(next);
        self.response.start();
        // Without a wake, actix reads only when more input arrives.
        if matches!(next, Phase::Discarding(_) | Phase::Closing { unread: true }) {
            self.wake();
        }
        matches!(next, Phase::Closing { .. })
    }

    /// Whether a chunked body is not too large to be discarded, up to here. Its framing may be longer than its data.
    fn may_discard(&self, section: Section) -> bool {
        let announced = if let Section::ChunkedBody { announced, .. } = section { announced } else { 0 };
        announced <= self.max_body_bytes && self.section_bytes.get() <= MAX_FRAMING * self.max_body_bytes
    }

    fn await_head(&self) {
        self.section_bytes.set(0);
        self.has_request.set(false);
    }

    /// Records that everything that actix has written is in the socket since this time.
    pub(super) fn flushed(&self, since: Instant) {
        if self.response.flushed(since) && self.has_next.get() {
            self.wake();
        }
    }

    /// Returns how many of these bytes belong to the current request, and records them. The others wait. If the head is
    /// too large, no byte is taken, so that actix never sees its end.
    pub(super) fn take(&self, bytes: &[u8]) -> usize {
        let (mut section, discards) = match self.phase.get() {
            Phase::Receiving(section) => (section, false),
            Phase::Discarding(section) => (section, true),
            _ => return 0,
        };
        let before = section;
        let end = section.end_in(bytes);
        let count = end.unwrap_or(bytes.len());
        self.section_bytes.update(|sum| sum + count as u64);
        if let Section::Head(state) = before
            && self.section_bytes.get() > MAX_HEAD_BYTES
        {
            let is_first_line = matches!(state, HeadState::Start | HeadState::RequestLine);
            let line_end = memchr(b'\n', bytes).map(|end| self.section_bytes.get() - (count - end) as u64);
            let in_target = is_first_line && line_end.is_none_or(|end| end > MAX_TARGET_BYTES as u64);
            self.phase.set(Phase::Refusing(if in_target { HeadLimit::Target } else { HeadLimit::Fields }));
            return 0;
        }
        self.phase.set(match end {
            Some(_) if discards => {
                self.await_head();
                FIRST_PHASE
            }
            Some(_) => Phase::Responding,
            None if discards && !self.may_discard(section) => Phase::Closing { unread: true },
            None if discards => Phase::Discarding(section),
            None => Phase::Receiving(section),
        });
        count
    }
}
