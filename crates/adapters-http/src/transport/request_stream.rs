//! Delivers one request at a time to actix, even if the client pipelines requests (RFC 9112, section 9.3.2), and closes
//! a connection without losing its final response (section 9.6).

mod closing;
#[cfg(test)]
mod tests;

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::{
    connection::Connection, connections::Slot, drain::Drain, framing::Section, phase::Phase,
    write_timeout::WriteTimeoutStream,
};

/// When this many bytes of later requests are buffered, the rest stays in the socket.
const MAX_BUFFERED: usize = 8 * 1024;

const FILLER: [u8; 1024] = [0; 1024];

/// A stream that delivers one request at a time.
pub(crate) struct RequestStream<T> {
    stream: WriteTimeoutStream<T>,
    slot: Slot,
    body_timeout: Duration,
    /// Bytes of later requests.
    buffered: Vec<u8>,
    /// Timeout for the rest of a body that is discarded.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the stream has refused a head.
    refused: bool,
    /// Bytes of a refusal that are written.
    refusal_written: usize,
    /// Set once the sending side is closed.
    drain: Option<Drain>,
}

impl<T> RequestStream<T> {
    pub(crate) fn new(stream: WriteTimeoutStream<T>, slot: Slot, body_timeout: Duration) -> Self {
        Self {
            stream,
            slot,
            body_timeout,
            buffered: Vec::new(),
            timer: None,
            refused: false,
            refusal_written: 0,
            drain: None,
        }
    }

    pub(crate) fn connection(&self) -> &Rc<Connection> {
        &self.slot.connection
    }

    /// Whether the timeout has passed since the first poll.
    fn poll_timer(&mut self, timeout: Duration, context: &mut Context<'_>) -> Poll<()> {
        self.timer.get_or_insert_with(|| Box::pin(sleep(timeout))).as_mut().poll(context)
    }
}

impl<T: AsyncRead + Unpin> RequestStream<T> {
    fn poll_receiving(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.buffered.is_empty() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            if buffer.filled().len() == before {
                self.connection().end_input();
            }
            let count = self.slot.connection.take(&buffer.filled()[before..]);
            self.buffered.extend_from_slice(&buffer.filled()[before + count..]);
            buffer.set_filled(before + count);
        } else {
            let fits = self.buffered.len().min(buffer.remaining());
            let count = self.slot.connection.take(&self.buffered[..fits]);
            buffer.put_slice(&self.buffered[..count]);
            self.buffered.drain(..count);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the input, unless a request has arrived.
    fn poll_closed(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.connection().is_idle() && self.poll_receiving(context, buffer)?.is_ready() {
            if buffer.filled().len() > before {
                self.connection().keep_open();
            }
        } else if !self.connection().can_be_closed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    /// Reads ahead without delivering, so that a closed connection is noticed.
    fn poll_ahead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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
        self.connection().set_next(!self.buffered.is_empty());
        Poll::Pending
    }

    /// Reads and drops the rest of a body.
    fn poll_discarding(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while matches!(self.connection().phase(), Phase::Discarding(_)) {
            if self.buffered.is_empty() {
                let mut bytes = [MaybeUninit::uninit(); 4096];
                let mut buffer = ReadBuf::uninit(&mut bytes);
                ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
                if buffer.filled().is_empty() {
                    self.connection().end_input();
                }
                self.buffered.extend_from_slice(buffer.filled());
            }
            let count = self.slot.connection.take(&self.buffered);
            self.buffered.drain(..count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for RequestStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.connection().remember_task(context.waker());
        if self.connection().is_closed() {
            return self.poll_closed(context, buffer);
        }
        let timeout = self.body_timeout;
        if !matches!(self.connection().phase(), Phase::Discarding(_)) {
            self.timer = None;
        } else if self.poll_timer(timeout, context).is_ready() {
            self.connection().end_input();
        }
        loop {
            match self.connection().phase() {
                // actix would append the refusal of a head to a response that is not sent completely.
                Phase::Receiving(Section::Head(_)) if self.connection().response.is_sending() => {
                    return self.poll_ahead(context);
                }
                Phase::Receiving(_) | Phase::Discarding(Section::ChunkedBody { .. }) => {
                    ready!(self.poll_receiving(context, buffer))?;
                    if !matches!(self.connection().phase(), Phase::Refusing(_)) {
                        return Poll::Ready(Ok(()));
                    }
                }
                Phase::Responding => return self.poll_ahead(context),
                Phase::Filling { .. } => {
                    let count = self.connection().take_filler(buffer.remaining().min(FILLER.len()));
                    buffer.put_slice(&FILLER[..count]);
                    return if count > 0 { Poll::Ready(Ok(())) } else { Poll::Pending };
                }
                Phase::Discarding(_) => ready!(self.poll_discarding(context))?,
                Phase::Refusing(limit) => ready!(self.poll_refusing(limit, context))?,
                // The end of the input.
                Phase::Closing { .. } => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for RequestStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.refused {
            // actix refuses the same head.
            return Poll::Ready(Ok(bytes.len()));
        }
        if self.connection().has_no_request() {
            return self.poll_actix_refusal(bytes, context);
        }
        if matches!(self.connection().phase(), Phase::Discarding(_)) && !self.connection().response.is_sending() {
            // actix refuses the rest of a body. The request has its response.
            return self.poll_close(context).map_ok(|()| bytes.len());
        }
        if self.connection().is_closed() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.connection().flushed(self.stream.last_write());
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_close(context)
    }
}
