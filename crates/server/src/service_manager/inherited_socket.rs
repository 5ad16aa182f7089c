//! The socket that a service manager has bound and passed (`LISTEN_FDS`), so that a restart refuses no connection.
//! Exactly one listening stream socket is accepted, on TCP or with a path: another number or kind of sockets ends the
//! start, because the clients of a socket that is not served would wait for ever.

use animal_store_adapters_http::HttpListener;
use anyhow::{Context, bail};
use listenfd::ListenFd;

use crate::config::ListenAddress;

/// The listening socket that a service manager has passed (`sd_listen_fds`).
pub(crate) struct InheritedSocket {
    pub(crate) listener: HttpListener,
    pub(crate) address: ListenAddress,
}

impl InheritedSocket {
    /// Takes the socket that `LISTEN_FDS` and `LISTEN_PID` announce, and removes both variables. Must be called before
    /// the process has a second thread.
    ///
    /// # Errors
    /// If there is more than one, or if it is not a listening TCP socket or Unix stream socket.
    pub(crate) fn take() -> anyhow::Result<Option<Self>> {
        let mut sockets = ListenFd::from_env();
        match sockets.len() {
            0 => return Ok(None),
            1 => {}
            count => bail!("the service manager passed {count} sockets (LISTEN_FDS): pass exactly one"),
        }
        let socket = if let Ok(Some(socket)) = sockets.take_unix_listener(0) {
            let path = socket.local_addr()?.as_pathname().unwrap_or("(no path)".as_ref()).to_owned();
            HttpListener::inherited_unix(socket).map(|listener| (ListenAddress::Unix(path), listener))
        } else if let Ok(Some(socket)) = sockets.take_tcp_listener(0) {
            let address = ListenAddress::Tcp(socket.local_addr()?);
            HttpListener::inherited_tcp(socket).map(|listener| (address, listener))
        } else {
            bail!("the service manager passed no listening stream socket (LISTEN_FDS): see ListenStream of systemd")
        };
        let (address, listener) = socket.context("the service manager passed a socket (LISTEN_FDS)")?;
        Ok(Some(Self { listener, address }))
    }
}
