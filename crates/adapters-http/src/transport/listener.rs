//! The listening sockets, and how each of them ends without losing a connection that a client has opened.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixListener,
    path::PathBuf,
    time::Duration,
};

use socket2::SockRef;

/// Maximum number of bytes in the socket of a connection that were not sent yet. Without it, the kernel buffers
/// megabytes for a client that does not read. Accepted sockets inherit it.
const MAX_NOT_SENT: u32 = 16 * 1024;

/// Time in which connections that are being opened are accepted before the listener closes.
pub(crate) const ACCEPT_TIME: Duration = Duration::from_millis(100);

/// Length of the queue of connections that are not accepted yet. The system may have a lower maximum. If the queue is
/// full, a client retries after a second.
const BACKLOG: i32 = 4096;

/// A listening socket for clients.
#[derive(Debug)]
pub struct HttpListener {
    pub(crate) socket: ListeningSocket,
    end: ListenerEnd,
}

#[derive(Debug)]
pub(crate) enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// How the server ends the listener.
#[derive(Debug)]
enum ListenerEnd {
    /// The kernel ignores further attempts to connect. Clients retry for a second, and are then refused.
    IgnoreAttempts,
    /// The path is removed, so that clients cannot connect.
    RemovePath(PathBuf),
    /// Another process has the socket too, and accepts the connections that wait in it.
    Leave,
}

impl HttpListener {
    /// A TCP socket of this process.
    pub const fn tcp(socket: TcpListener) -> Self {
        Self { socket: ListeningSocket::Tcp(socket), end: ListenerEnd::IgnoreAttempts }
    }

    /// A Unix socket of this process with this path, which is removed at the end.
    pub const fn unix(socket: UnixListener, path: PathBuf) -> Self {
        Self { socket: ListeningSocket::Unix(socket), end: ListenerEnd::RemovePath(path) }
    }

    /// Leaves the socket as it is at the end, because the process that started this one keeps it.
    #[must_use]
    pub fn inherited(self) -> Self {
        Self { end: ListenerEnd::Leave, ..self }
    }

    /// Returns the address of a TCP socket.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.socket {
            ListeningSocket::Tcp(socket) => socket.local_addr().ok(),
            ListeningSocket::Unix(_) => None,
        }
    }

    /// Sets the options of the socket.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let socket = match &self.socket {
            ListeningSocket::Tcp(socket) => {
                let socket = SockRef::from(socket);
                socket.set_tcp_notsent_lowat(MAX_NOT_SENT)?;
                socket
            }
            ListeningSocket::Unix(socket) => SockRef::from(socket),
        };
        socket.listen(BACKLOG)
    }

    pub(crate) fn try_clone_socket(&self) -> io::Result<ListeningSocket> {
        Ok(match &self.socket {
            ListeningSocket::Tcp(socket) => ListeningSocket::Tcp(socket.try_clone()?),
            ListeningSocket::Unix(socket) => ListeningSocket::Unix(socket.try_clone()?),
        })
    }

    /// Lets no further connection arrive. A socket that is closed resets the connections that are not accepted yet:
    /// after [`ACCEPT_TIME`] there are none, and no request is lost. Returns whether connections still arrive, for
    /// another process.
    pub(crate) fn end(&self) -> io::Result<bool> {
        match (&self.end, &self.socket) {
            (ListenerEnd::IgnoreAttempts, ListeningSocket::Tcp(socket)) => {
                SockRef::from(socket).attach_filter(&DROP_SYN)?;
            }
            (ListenerEnd::RemovePath(path), _) => std::fs::remove_file(path)?,
            _ => return Ok(true),
        }
        Ok(false)
    }
}

/// A filter of the kernel for segments of TCP: drops those with SYN and without ACK.
const DROP_SYN: [socket2::SockFilter; 5] = {
    use socket2::SockFilter;
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]
};
