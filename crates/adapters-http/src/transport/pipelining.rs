//! Passes one request at a time to actix, even if the client pipelines requests (RFC 9112, section 9.3.2).
//!
//! actix reads ahead: it parses the next request while the current one waits for its response, and properties of the
//! next request (HEAD, the version, `Connection: close`, an incomplete body) change that response. [`RequestStream`]
//! therefore delivers the bytes of one request, and those of the next request only after [`respond`] has the response.

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

use actix_http::{ConnectionType, HttpMessage, Request, Response, Version, header::UPGRADE};
use actix_service::Service;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::framing::Section;
use crate::body::declared_length;

/// After the final response, input is drained for this long, so that closing does not reset the connection.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// When this many bytes of later requests are buffered, the rest stays in the socket.
const MAX_BUFFERED: usize = 8 * 1024;

/// Progress of the current request of a connection, shared by its stream and by [`respond`].
#[derive(Default)]
pub(crate) struct Progress {
    phase: Cell<Phase>,
    /// The task to wake when more bytes may be delivered.
    reader: RefCell<Option<Waker>>,
}

/// Decides which bytes may be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The bytes of this section of a request.
    Receiving { section: Section, responded: bool },
    /// No bytes: the request is complete and waits for its response.
    Responding,
    /// No bytes: the connection has its final response.
    Draining,
}

impl Default for Phase {
    fn default() -> Self {
        Self::Receiving { section: Section::HEAD, responded: false }
    }
}

impl Progress {
    /// Records that a head was parsed.
    fn start(&self, request: &Request) {
        let body = match declared_length(request.headers()) {
            _ if request.chunked().unwrap_or(false) => Some(Section::CHUNKED_BODY),
            Some(length @ 1..) => Some(Section::Body(length)),
            _ => None,
        };
        self.set(body.map_or(Phase::Responding, |section| Phase::Receiving { section, responded: false }));
    }

    /// Records the response to the request, which may be the final one of the connection.
    fn finish(&self, is_final: bool) {
        self.set(match self.phase.get() {
            _ if is_final => Phase::Draining,
            Phase::Responding => Phase::default(),
            // actix reads the rest of a chunked body and continues. After any other incomplete body it closes the
            // connection.
            Phase::Receiving { section: section @ Section::ChunkedBody(_), .. } => {
                Phase::Receiving { section, responded: true }
            }
            Phase::Receiving { .. } | Phase::Draining => Phase::Draining,
        });
    }

    fn set(&self, phase: Phase) {
        self.phase.set(phase);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Returns how many of these bytes may be delivered, and counts them as delivered.
    fn deliver(&self, bytes: &[u8]) -> usize {
        let Phase::Receiving { mut section, responded } = self.phase.get() else { return 0 };
        let end = section.end_in(bytes);
        self.phase.set(match end {
            None => Phase::Receiving { section, responded },
            Some(_) if responded => Phase::default(),
            Some(_) => Phase::Responding,
        });
        end.unwrap_or(bytes.len())
    }
}

/// Calls the service. Its response lets the stream deliver the next request.
pub(crate) fn respond<S, B>(
    request: Request,
    service: &S,
) -> impl Future<Output = Result<Response<B>, S::Error>> + use<S, B>
where
    S: Service<Request>,
    S::Response: Into<Response<B>>,
{
    let progress = request.conn_data::<Rc<Progress>>().cloned().expect("every connection has one");
    // In the protocol of the upgrade, the request may end at another byte.
    let upgrade = request.headers().contains_key(UPGRADE);
    let is_final = upgrade || request.head().connection_type() == ConnectionType::Close;
    progress.start(&request);
    let response = service.call(request);
    async move {
        let mut response: Response<B> = response.await.inspect_err(|_| progress.finish(is_final))?.into();
        let head = response.head_mut();
        if upgrade {
            head.set_connection_type(ConnectionType::Close);
        }
        // In HTTP/1.0, only the request decides whether the connection closes. If actix adds `Connection: close` later,
        // it reads no further request.
        let closes = head.version >= Version::HTTP_11 && head.connection_type() == ConnectionType::Close;
        progress.finish(is_final || closes);
        Ok(response)
    }
}

/// A stream that delivers one request at a time.
pub(crate) struct RequestStream<T> {
    stream: T,
    progress: Rc<Progress>,
    /// Bytes of later requests.
    buffered: Vec<u8>,
    /// Started by the final response.
    drain: Option<Pin<Box<Sleep>>>,
}

impl<T> RequestStream<T> {
    pub(crate) fn new(stream: T) -> Self {
        Self { stream, progress: Rc::default(), buffered: Vec::new(), drain: None }
    }

    pub(crate) fn progress(&self) -> Rc<Progress> {
        Rc::clone(&self.progress)
    }
}

impl<T: AsyncRead + Unpin> RequestStream<T> {
    fn poll_receiving(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.buffered.is_empty() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            let count = self.progress.deliver(&buffer.filled()[before..]);
            self.buffered.extend_from_slice(&buffer.filled()[before + count..]);
            buffer.set_filled(before + count);
        } else {
            let fits = self.buffered.len().min(buffer.remaining());
            let count = self.progress.deliver(&self.buffered[..fits]);
            buffer.put_slice(&self.buffered[..count]);
            self.buffered.drain(..count);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads ahead without delivering, so that a closed connection is noticed.
    fn poll_responding(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.buffered.len() < MAX_BUFFERED {
            let mut bytes = [MaybeUninit::uninit(); 1024];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer)? {
                // The end of the input, unless buffered bytes come before it.
                Poll::Ready(()) if buffer.filled().is_empty() && self.buffered.is_empty() => {
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(()) if !buffer.filled().is_empty() => self.buffered.extend_from_slice(buffer.filled()),
                Poll::Ready(()) | Poll::Pending => break,
            }
        }
        // With an empty buffer, the stream wakes the task.
        if !self.buffered.is_empty() {
            *self.progress.reader.borrow_mut() = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Reads and drops input until the client closes or [`DRAIN_TIMEOUT`] has passed, and then ends.
    fn poll_draining(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.buffered = Vec::new();
        if self.drain.get_or_insert_with(|| Box::pin(sleep(DRAIN_TIMEOUT))).as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut bytes = [MaybeUninit::uninit(); 4096];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for RequestStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.progress.phase.get() {
            Phase::Receiving { .. } => self.poll_receiving(context, buffer),
            Phase::Responding => self.poll_responding(context),
            Phase::Draining => self.poll_draining(context),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for RequestStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
