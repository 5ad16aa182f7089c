//! Counts the open connections of clients for the metrics. A connection is open from its creation until it is dropped,
//! whatever ends it, and TLS handshakes are included.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::metrics::HttpMetrics;

/// Counts a connection of a client from its creation until it is dropped.
pub(crate) struct OpenConnection(Arc<HttpMetrics>);

impl OpenConnection {
    pub(crate) fn new(metrics: Arc<HttpMetrics>) -> Self {
        metrics.connections_accepted.inc();
        metrics.connections_open.inc();
        Self(metrics)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.dec();
    }
}

/// A connection of a client that is counted.
pub(crate) struct CountedStream<T> {
    stream: T,
    _open: OpenConnection,
}

impl<T> CountedStream<T> {
    pub(crate) const fn new(stream: T, open: OpenConnection) -> Self {
        Self { stream, _open: open }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CountedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CountedStream<T> {
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
