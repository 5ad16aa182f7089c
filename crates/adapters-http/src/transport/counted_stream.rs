use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::metrics::WorkerMetrics;

/// A connection of a client that counts itself and its bytes.
pub(crate) struct CountedStream<T> {
    stream: T,
    metrics: Arc<WorkerMetrics>,
}

impl<T> CountedStream<T> {
    pub(crate) fn new(stream: T, metrics: Arc<WorkerMetrics>) -> Self {
        metrics.connections_accepted.inc();
        Self { stream, metrics }
    }
}

impl<T> Drop for CountedStream<T> {
    fn drop(&mut self) {
        self.metrics.connections_ended.inc();
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CountedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.metrics.received_bytes.inc_by((buffer.filled().len() - before) as u64);
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CountedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.metrics.sent_bytes.inc_by(count as u64);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
