//! Options of the listening socket.

use std::{io, net::TcpListener, time::Duration};

use socket2::SockRef;

/// Maximum number of bytes in the socket of a connection that were not sent yet. Without it, the kernel buffers
/// megabytes for a client that does not read. Accepted sockets inherit it.
const MAX_NOT_SENT: u32 = 16 * 1024;

/// Time in which connections that are being opened are accepted before the listener closes.
pub(crate) const ACCEPT_TIME: Duration = Duration::from_millis(100);

/// Length of the queue of connections that are not accepted yet. The system may have a lower maximum. If the queue is
/// full, a client retries after a second.
const BACKLOG: i32 = 4096;

/// Sets the options of a listening socket.
pub(crate) fn prepare(listener: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    socket.set_tcp_notsent_lowat(MAX_NOT_SENT)?;
    socket.listen(BACKLOG)
}

/// Lets the kernel ignore further attempts to connect. A listener that is closed resets the connections that it has
/// not accepted; after [`ACCEPT_TIME`] there are none, and no request is lost. Clients retry for a second, and are then
/// refused.
pub(crate) fn ignore_new_connections(listener: &TcpListener) -> io::Result<()> {
    SockRef::from(listener).attach_filter(&DROP_SYN)
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
