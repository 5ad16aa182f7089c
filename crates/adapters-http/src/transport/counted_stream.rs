//! Counts the connections of clients and their bytes for the metrics. A connection is open from its creation until it
//! is dropped, whatever ends it, and TLS handshakes are included. The bytes are those of HTTP: with TLS, those before
//! encryption.

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

/// A connection of a client that counts its bytes, those of HTTP without TLS.
pub(crate) struct CountedStream<T> {
    stream: T,
    open: OpenConnection,
}

impl<T> CountedStream<T> {
    pub(crate) const fn new(stream: T, open: OpenConnection) -> Self {
        Self { stream, open }
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
        self.open.0.received_bytes.inc_by((buffer.filled().len() - before) as u64);
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CountedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.open.0.sent_bytes.inc_by(count as u64);
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter, duplex};

    use super::*;

    #[tokio::test]
    async fn the_bytes_of_each_direction_are_counted_and_passed_on() {
        let metrics = Arc::<HttpMetrics>::default();
        let (mut client, server) = duplex(16);
        let mut stream = CountedStream::new(BufWriter::new(server), OpenConnection::new(Arc::clone(&metrics)));

        client.write_all(b"abc").await.unwrap();
        let mut bytes = [0; 16];
        let mut buffer = ReadBuf::new(&mut bytes);
        buffer.put_slice(b"before");
        poll_fn(|context| Pin::new(&mut stream).poll_read(context, &mut buffer)).await.unwrap();
        assert_eq!((buffer.filled(), metrics.received_bytes.get()), (&b"beforeabc"[..], 3));

        stream.write_all(b"defgh").await.unwrap();
        stream.flush().await.unwrap();
        let mut sent = [0; 5];
        client.read_exact(&mut sent).await.unwrap();
        assert_eq!((&sent, metrics.sent_bytes.get()), (b"defgh", 5));
    }
}
