//! One request at a time on each connection, however many a client sends at once.
//!
//! actix reads ahead: it takes the next request apart while the last one waits for its answer, and lets what it finds
//! there (HEAD, the version, `Connection: close`, an unfinished body) change that answer. So this stream hands it the
//! bytes of one request, and those of the next only once that one is answered. Where a head ends, its empty line tells;
//! where a body ends, [`take`] tells from the header that actix has parsed.

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    io,
    mem::MaybeUninit,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};

use actix_http::{
    ConnectionType, HttpMessage, Request, Response,
    header::{CONTENT_LENGTH, UPGRADE},
};
use actix_service::Service;
use memchr::memchr;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of later requests that are kept here; the rest waits in the socket.
const MAX_HELD: usize = 8 * 1024;

/// Whose turn it is on a connection. Its stream and its requests share it.
#[derive(Clone, Default)]
pub(crate) struct Turn(Rc<Shared>);

#[derive(Default)]
struct Shared {
    state: Cell<State>,
    /// Whoever reads, where something is held back from it.
    reader: RefCell<Option<Waker>>,
}

/// Which bytes may be handed over now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Those of a head, up to its empty line.
    Head(Line),
    /// None: a head is complete, and is being taken apart or answered.
    Waiting { last: bool },
    /// So many of a body.
    Body { left: u64, answered: bool, last: bool },
    /// All that come: actix alone knows where a chunked body ends.
    All,
    /// None any more.
    Closed,
}

/// How far the search for the empty line has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Before the first line: empty lines do not count here (RFC 9112, section 2.2).
    None,
    /// Within a line.
    Within,
    /// A line has ended.
    Ended,
    /// A line has ended, and a carriage return follows.
    Returned,
}

impl Default for State {
    fn default() -> Self {
        Self::Head(Line::None)
    }
}

impl State {
    fn next(last: bool) -> Self {
        if last { Self::Closed } else { Self::default() }
    }
}

impl Turn {
    /// A request has begun. Nothing follows the last one of a connection.
    fn begin(&self, request: &Request, last: bool) {
        let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        self.set(if request.chunked().unwrap_or(true) {
            State::All
        } else if let Some(left @ 1..) = length {
            State::Body { left, answered: false, last }
        } else {
            State::Waiting { last }
        });
    }

    /// It has its answer.
    fn end(&self) {
        self.set(match self.0.state.get() {
            State::Waiting { last } => State::next(last),
            State::Body { left, last, .. } => State::Body { left, answered: true, last },
            state => state,
        });
    }

    fn set(&self, state: State) {
        self.0.state.set(state);
        if let Some(reader) = self.0.reader.borrow_mut().take() {
            reader.wake();
        }
    }

    /// How many of these bytes may be handed over, which they then are.
    fn hand_over(&self, bytes: &[u8]) -> usize {
        let (count, state) = match self.0.state.get() {
            State::Head(line) => match find_empty_line(line, bytes) {
                Ok(end) => (end, State::Waiting { last: false }),
                Err(line) => (bytes.len(), State::Head(line)),
            },
            State::Body { left, answered, last } => {
                let count = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                let state = match left - count as u64 {
                    0 if answered => State::next(last),
                    0 => State::Waiting { last },
                    left => State::Body { left, answered, last },
                };
                (count, state)
            }
            State::All => (bytes.len(), State::All),
            state @ (State::Waiting { .. } | State::Closed) => (0, state),
        };
        self.0.state.set(state);
        count
    }

    fn is_open(&self) -> bool {
        !matches!(self.0.state.get(), State::Waiting { .. } | State::Closed)
    }
}

/// The end of the first empty line, or how far the search has come.
fn find_empty_line(mut line: Line, bytes: &[u8]) -> Result<usize, Line> {
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        line = match (line, byte) {
            (Line::Ended | Line::Returned, b'\n') => return Ok(bytes.len() - rest.len()),
            (Line::None, b'\r' | b'\n') => Line::None,
            (Line::Ended, b'\r') => Line::Returned,
            (Line::Within, b'\n') => Line::Ended,
            _ => {
                // Nothing within a line matters but its end.
                rest = rest.as_slice()[memchr(b'\n', rest.as_slice()).unwrap_or(rest.len())..].iter();
                Line::Within
            }
        };
    }
    Err(line)
}

/// Calls the service, and tells the stream of the request's connection when it begins and when it is answered.
pub(crate) fn take<S, B>(
    request: Request,
    service: &S,
) -> impl Future<Output = Result<Response<B>, S::Error>> + use<S, B>
where
    S: Service<Request>,
    S::Response: Into<Response<B>>,
{
    let turn = request.conn_data::<Turn>().cloned().unwrap_or_default();
    // A protocol that we do not speak may have other ideas of where this request ends.
    let upgrade = request.headers().contains_key(UPGRADE);
    turn.begin(&request, upgrade || request.head().connection_type() == ConnectionType::Close);
    let answer = service.call(request);
    async move {
        let answer = answer.await;
        turn.end();
        let mut response = answer?.into();
        if upgrade {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        Ok(response)
    }
}

pin_project! {
    /// A stream that hands over one request at a time.
    pub(crate) struct Turns<T> {
        #[pin]
        stream: T,
        turn: Turn,
        // What was read of later requests.
        held: Vec<u8>,
    }
}

impl<T> Turns<T> {
    pub(crate) fn new(stream: T) -> Self {
        Self { stream, turn: Turn::default(), held: Vec::new() }
    }

    /// Whose turn it is on this connection.
    pub(crate) fn turn(&self) -> Turn {
        self.turn.clone()
    }
}

impl<T: AsyncRead> Turns<T> {
    /// Reads ahead while nothing may be handed over, so that a client that leaves is noticed.
    fn poll_ahead(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        while this.held.len() < MAX_HELD {
            let mut bytes = [MaybeUninit::uninit(); 1024];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            match this.stream.as_mut().poll_read(context, &mut buffer)? {
                // The end, unless something that is held comes before it.
                Poll::Ready(()) if buffer.filled().is_empty() && this.held.is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(()) if !buffer.filled().is_empty() => this.held.extend_from_slice(buffer.filled()),
                Poll::Ready(()) | Poll::Pending => break,
            }
        }
        // Without anything held, only the stream itself can have news.
        if !this.held.is_empty() {
            *this.turn.0.reader.borrow_mut() = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl<T: AsyncRead> AsyncRead for Turns<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.turn.is_open() {
            return self.poll_ahead(context);
        }
        let this = self.project();
        if this.held.is_empty() {
            let before = buffer.filled().len();
            ready!(this.stream.poll_read(context, buffer))?;
            let count = this.turn.hand_over(&buffer.filled()[before..]);
            this.held.extend_from_slice(&buffer.filled()[before + count..]);
            buffer.set_filled(before + count);
        } else {
            let fits = this.held.len().min(buffer.remaining());
            let count = this.turn.hand_over(&this.held[..fits]);
            buffer.put_slice(&this.held[..count]);
            this.held.drain(..count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite> AsyncWrite for Turns<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(context)
    }
}
