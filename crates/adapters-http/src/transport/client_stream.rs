use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use actix_web::rt::net::{TcpStream, UnixStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The connection of a client, whatever listener has accepted it. One type, so that actix is compiled once.
pub(crate) enum ClientStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Calls a method of the stream that is inside.
macro_rules! delegate {
    ($stream:expr, $method:ident, $($argument:expr),+) => {
        match $stream.get_mut() {
            ClientStream::Tcp(stream) => Pin::new(stream).$method($($argument),+),
            ClientStream::Unix(stream) => Pin::new(stream).$method($($argument),+),
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, poll_read, context, buffer)
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
