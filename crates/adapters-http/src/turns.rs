//! One request at a time on each connection, however many a client sends at once.
//!
//! actix reads ahead: it takes the next request apart while the last one waits for its answer, and lets what it finds
//! there (HEAD, the version, `Connection: close`, an unfinished body) change that answer. So this stream hands it the
//! bytes of one request, and those of the next only once that one is answered.

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    io,
    mem::MaybeUninit,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use actix_http::{ConnectionType, HttpMessage, Request, Response, ResponseHead, Version, header::UPGRADE};
use actix_service::Service;
use pin_project_lite::pin_project;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::{body::declared_length, framing::Part};

/// Behind the last answer, so much longer what still comes is read, so that the client gets to see that answer.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

/// Where so many bytes of later requests are kept here already, the rest waits in the socket.
const ENOUGH_HELD: usize = 8 * 1024;

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
    /// Those of this part of a request.
    Open { part: Part, answered: bool },
    /// None: a request is complete, and is being answered.
    Waiting,
    /// None any more.
    Closed,
}

impl Default for State {
    fn default() -> Self {
        Self::Open { part: Part::HEAD, answered: false }
    }
}

impl Turn {
    /// A head was taken apart.
    fn begin(&self, request: &Request) {
        let body = match declared_length(request.headers()) {
            _ if request.chunked().unwrap_or(false) => Some(Part::CHUNKS),
            Some(length @ 1..) => Some(Part::Length(length)),
            _ => None,
        };
        self.set(body.map_or(State::Waiting, |part| State::Open { part, answered: false }));
    }

    /// Its request has its answer, which may be the last of the connection.
    fn end(&self, last: bool) {
        self.set(match self.0.state.get() {
            _ if last => State::Closed,
            State::Waiting => State::default(),
            // actix reads what is left of a chunked body, and goes on; behind any other one it ends the connection.
            State::Open { part: part @ Part::Chunks(_), .. } => State::Open { part, answered: true },
            State::Open { .. } | State::Closed => State::Closed,
        });
    }

    fn set(&self, state: State) {
        self.0.state.set(state);
        if let Some(reader) = self.0.reader.take() {
            reader.wake();
        }
    }

    /// How many of these bytes may be handed over, which they then are.
    fn hand_over(&self, bytes: &[u8]) -> usize {
        let State::Open { mut part, answered } = self.0.state.get() else { return 0 };
        let end = part.end_in(bytes);
        self.0.state.set(match end {
            None => State::Open { part, answered },
            Some(_) if answered => State::default(),
            Some(_) => State::Waiting,
        });
        end.unwrap_or(bytes.len())
    }
}

/// Calls the service when it is the request's turn, and gives the next one its turn when this one is answered.
pub(crate) fn answer_in_turn<S, B>(
    request: Request,
    service: &S,
) -> impl Future<Output = Result<Response<B>, S::Error>> + use<S, B>
where
    S: Service<Request>,
    S::Response: Into<Response<B>>,
{
    let turn = request.conn_data::<Turn>().cloned().expect("every connection has one");
    // A protocol that we do not speak may have other ideas of where this request ends.
    let upgrade = request.headers().contains_key(UPGRADE);
    let last = upgrade || request.head().connection_type() == ConnectionType::Close;
    turn.begin(&request);
    let answer = service.call(request);
    async move {
        let mut response = match answer.await {
            Ok(response) => response.into(),
            Err(error) => {
                turn.end(last);
                return Err(error);
            }
        };
        if upgrade {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        turn.end(last || closes(response.head()));
        Ok(response)
    }
}

/// Whether an answer itself says that it is the last. In HTTP/1.0 only its request knows. Where actix adds
/// `Connection: close` of its own accord, it also reads no further request.
fn closes(head: &ResponseHead) -> bool {
    head.version >= Version::HTTP_11 && head.connection_type() == ConnectionType::Close
}

pin_project! {
    /// A stream that hands over one request at a time.
    pub(crate) struct Turns<T> {
        #[pin]
        stream: T,
        turn: Turn,
        // What was read of later requests.
        held: Vec<u8>,
        // Runs once the turn is closed.
        linger: Option<Pin<Box<Sleep>>>,
    }
}

impl<T> Turns<T> {
    pub(crate) fn new(stream: T) -> Self {
        Self { stream, turn: Turn::default(), held: Vec::new(), linger: None }
    }

    /// Whose turn it is on this connection.
    pub(crate) fn turn(&self) -> Turn {
        self.turn.clone()
    }
}

impl<T: AsyncRead> Turns<T> {
    fn poll_open(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
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

    /// Reads ahead while nothing may be handed over, so that a client that leaves is noticed.
    fn poll_waiting(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        while this.held.len() < ENOUGH_HELD {
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

    /// Reads and drops what still comes, until the client ends or [`LINGER`] has passed; then this is the end.
    fn poll_closed(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        *this.held = Vec::new();
        if this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER))).as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut bytes = [MaybeUninit::uninit(); 4096];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            ready!(this.stream.as_mut().poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsyncRead> AsyncRead for Turns<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.turn.0.state.get() {
            State::Open { .. } => self.poll_open(context, buffer),
            State::Waiting => self.poll_waiting(context),
            State::Closed => self.poll_closed(context),
        }
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
