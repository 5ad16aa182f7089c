//! The socket of a connection, which its task uses and its worker examines.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// The socket of a client. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Socket(Rc<RefCell<TcpStream>>);

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Rc::new(RefCell::new(stream)))
    }

    /// Returns the number of bytes that the client has acknowledged. Bytes that are written can still be in a buffer of
    /// this machine.
    pub(super) fn acknowledged(&self) -> u64 {
        acknowledged(&self.0.borrow())
    }

    /// When the connection is closed, discards what is not acknowledged. Otherwise the system holds it for minutes.
    pub(super) fn discard_at_close(&self) {
        // Fails if the connection is gone.
        let _ = SockRef::from(&*self.0.borrow()).set_linger(Some(Duration::ZERO));
    }

    fn with<R>(&self, operation: impl FnOnce(Pin<&mut TcpStream>) -> R) -> R {
        operation(Pin::new(&mut self.0.borrow_mut()))
    }
}

#[cfg(target_os = "linux")]
fn acknowledged(stream: &TcpStream) -> u64 {
    use nix::{getsockopt_impl, libc, sockopt_impl, sys::socket::getsockopt};

    /// Index of `tcpi_bytes_acked` in `struct tcp_info`, which only grows at its end.
    const BYTES_ACKED: usize = 15;

    sockopt_impl!(
        /// The start of `struct tcp_info`: any bytes are valid.
        TcpInfo,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        [u64; BYTES_ACKED + 1]
    );
    getsockopt(stream, TcpInfo).map_or(0, |info| info[BYTES_ACKED])
}

/// On other systems, the crate is built for its tests alone.
#[cfg(not(target_os = "linux"))]
fn acknowledged(_: &TcpStream) -> u64 {
    0
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpSocket},
    };

    use super::*;

    #[tokio::test(flavor = "local")]
    async fn only_bytes_that_the_client_has_acknowledged_count() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4096).unwrap();
        let client = client.connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        let mut client = client.unwrap();
        let mut socket = Socket::new(accepted.unwrap().0);
        let before = socket.acknowledged();

        socket.write_all(&vec![0; 100_000]).await.unwrap();
        let unread = socket.acknowledged() - before;
        assert!(unread < 50_000, "{unread}");

        client.read_exact(&mut vec![0; 100_000]).await.unwrap();
        // The system of the client acknowledges the last bytes a little later.
        while socket.acknowledged() < before + 100_000 {
            tokio::task::yield_now().await;
        }
    }
}
