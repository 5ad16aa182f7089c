//! The listening sockets, and how each of them ends without losing a connection that a client has opened.

use std::{io, net::TcpListener, time::Duration};

use socket2::SockRef;

/// Maximum number of bytes in the socket of a connection that were not sent yet. Without it, the kernel buffers
/// megabytes for a client that does not read. Accepted sockets inherit it. Only Linux has it: on other systems, the
/// crate is built for its tests alone.
#[cfg(target_os = "linux")]
const MAX_NOT_SENT: u32 = 16 * 1024;

/// Time from the end of the attempts to connect until the listener closes. Connections whose first segment arrived
/// before are opened and accepted in it.
pub(crate) const ACCEPT_TIME: Duration = Duration::from_millis(100);

/// Length of the queue of connections that are not accepted yet. The system may have a lower maximum. If the queue is
/// full, a client retries after a second.
const BACKLOG: i32 = 4096;

/// A listening socket for clients.
#[derive(Debug)]
pub struct HttpListener {
    socket: TcpListener,
    is_inherited: bool,
}

impl HttpListener {
    /// A socket of this process.
    pub const fn new(socket: TcpListener) -> Self {
        Self { socket, is_inherited: false }
    }

    /// A socket that is left as it is at the end, because the process that started this one keeps it.
    ///
    /// # Errors
    /// If it does not listen.
    pub fn inherited(socket: TcpListener) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if !SockRef::from(&socket).is_listener()? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket does not listen"));
        }
        Ok(Self { socket, is_inherited: true })
    }

    /// Whether the process that started this one keeps the socket.
    pub const fn is_inherited(&self) -> bool {
        self.is_inherited
    }

    /// Sets the options of the socket. An inherited one keeps the length of its queue.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let options = SockRef::from(&self.socket);
        #[cfg(target_os = "linux")]
        options.set_tcp_notsent_lowat(MAX_NOT_SENT)?;
        if self.is_inherited { Ok(()) } else { options.listen(BACKLOG) }
    }

    pub(crate) fn try_clone_socket(&self) -> io::Result<TcpListener> {
        self.socket.try_clone()
    }

    /// Lets no further connection arrive. A socket that is closed resets the connections that are not accepted yet:
    /// after [`ACCEPT_TIME`] there are none, and no request is lost. The kernel ignores further attempts to connect:
    /// clients retry for a second, and are then refused. An inherited socket stays open: connections go on arriving,
    /// for the next process.
    pub(crate) fn end(&self) -> io::Result<()> {
        if self.is_inherited { Ok(()) } else { SockRef::from(&self.socket).attach_filter(&DROP_SYN) }
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
    const SYN_AND_ACK: u32 = 0x12;
    [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN_AND_ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_bounds_the_bytes_that_are_not_sent_whether_it_is_inherited_or_not() {
        let socket = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let inherited = HttpListener::inherited(socket()).expect("it listens");
        for (listener, is_inherited) in [(HttpListener::new(socket()), false), (inherited, true)] {
            assert_eq!(listener.is_inherited(), is_inherited);
            listener.prepare().expect("a socket that listens");
            #[cfg(target_os = "linux")]
            assert_eq!(SockRef::from(&listener.socket).tcp_notsent_lowat().expect("an option"), 16_384);
        }
    }
}
