//! The connection of a client, with or without TLS. Everything above it, such as timeouts, limits and draining, is the
//! same code for both. A connection without TLS costs one comparison per call and no allocation.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use actix_web::rt::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// The connection of a client. One type, so that actix is compiled once.
pub(crate) enum ClientStream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Calls a method of the stream that is inside.
macro_rules! delegate {
    ($stream:expr, $method:ident, $($argument:expr),+) => {
        match $stream.get_mut() {
            ClientStream::Tcp(stream) => Pin::new(stream).$method($($argument),+),
            ClientStream::Tls(stream) => Pin::new(stream).$method($($argument),+),
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match delegate!(self, poll_read, context, buffer) {
            // A client with TLS has closed without a closing message. The framing of HTTP shows that a request is cut.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, poll_write, context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, poll_flush, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, poll_shutdown, context)
    }
}
