//! Refuses heads, and closes a connection without losing its final response.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite};

use super::RequestStream;
use crate::transport::{
    drain::Drain,
    phase::{HeadLimit, Phase},
};

impl<T: AsyncRead + AsyncWrite + Unpin> RequestStream<T> {
    /// Refuses a head that is too large. actix does not see the rest of it.
    pub(super) fn poll_refusing(&mut self, limit: HeadLimit, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.refused {
            self.refused = true;
            self.log_refusal(limit.status());
        }
        ready!(self.poll_write_refusal(limit.response(), context))?;
        self.connection().end_input();
        Poll::Ready(Ok(()))
    }

    /// Writes the response of actix to a head that it refuses. After the last byte, actix drops the connection.
    pub(super) fn poll_actix_refusal(&mut self, response: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.refusal_written == 0 {
            let status = response.get(9..12).and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
            self.log_refusal(status.unwrap_or_default());
        }
        ready!(self.poll_write_refusal(response, context))?;
        self.poll_close(context).map_ok(|()| response.len())
    }

    fn poll_write_refusal(&mut self, response: &[u8], context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.refusal_written < response.len() {
            let rest = &response[self.refusal_written..];
            self.refusal_written += ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Closes the sending side at once, and then drains unread input.
    pub(super) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.drain.is_none() {
            let closed = Pin::new(&mut self.stream).poll_shutdown(context)?;
            // A connection that makes room does not wait for a client that does not read the closing message of TLS.
            if closed.is_pending() && !self.connection().is_closed() {
                return Poll::Pending;
            }
        }
        if !self.has_unread_input() || self.connection().is_closed() {
            return Poll::Ready(Ok(()));
        }
        let Self { stream, drain, .. } = self;
        drain.get_or_insert_with(Drain::new).poll(stream, context).map(Ok)
    }

    fn log_refusal(&self, status: u16) {
        self.slot.log().record_refusal(self.connection().peer, status);
    }

    /// Whether input can follow that the client sent before it saw the final response.
    fn has_unread_input(&self) -> bool {
        match self.connection().phase() {
            Phase::Closing { unread: false } => !self.buffered.is_empty(),
            _ => !self.connection().is_idle(),
        }
    }
}
