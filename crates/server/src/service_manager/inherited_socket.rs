//! The socket that a service manager has bound and passed (`LISTEN_FDS`), so that a restart refuses no connection.
//! Exactly one listening TCP socket is accepted: another number or kind of sockets ends the start, because the clients
//! of a socket that is not served would wait for ever.

use std::net::SocketAddr;

use animal_store_adapters_http::HttpListener;
use anyhow::{Context, bail};
use listenfd::ListenFd;

/// The listening socket that a service manager has passed (`sd_listen_fds`).
pub(crate) struct InheritedSocket {
    pub(crate) listener: HttpListener,
    pub(crate) address: SocketAddr,
}

impl InheritedSocket {
    /// Takes the socket that `LISTEN_FDS` and `LISTEN_PID` announce, and removes both variables. Must be called before
    /// the process has a second thread.
    ///
    /// # Errors
    /// If there is more than one, or if it is not a listening TCP socket.
    pub(crate) fn take() -> anyhow::Result<Option<Self>> {
        let mut sockets = ListenFd::from_env();
        match sockets.len() {
            0 => return Ok(None),
            1 => {}
            count => bail!("the service manager passed {count} sockets (LISTEN_FDS): pass exactly one"),
        }
        let Ok(Some(socket)) = sockets.take_tcp_listener(0) else {
            bail!(
                "the service manager passed no listening TCP socket (LISTEN_FDS): set ListenStream to an IP address \
                 with a port"
            )
        };
        let address = socket.local_addr()?;
        let listener = HttpListener::inherited(socket).context("the service manager passed a socket (LISTEN_FDS)")?;
        Ok(Some(Self { listener, address }))
    }
}
