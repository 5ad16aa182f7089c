//! The service manager that started the process: systemd, or another one with its protocols.
//!
//! **Problem.** A restart must not refuse a connection, and the manager must know whether the process serves: a start
//! that it believes finished is an outage that it does not repair.
//!
//! **Invariant.** A socket that the manager passes is served in place of `http.listen` and is left as it is at the end.
//! `READY=1` is sent when connections are served. A manager that does not read its notifications delays nothing.
//! Without a manager, there is neither a thread nor a notification.
//!
//! **Proof.** `socket_activation.rs` and `service_manager.rs` in `crates/server/tests/process`.

use std::{
    env, io,
    net::SocketAddr,
    sync::mpsc::{Sender, channel},
    thread,
    time::Duration,
};

use animal_store_adapters_http::HttpListener;
use anyhow::{Context, bail};
use listenfd::ListenFd;
use sd_notify::NotifyState;

/// Time for the end of the process after `shutdown.timeout`.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// The service manager, or its absence.
pub(crate) struct ServiceManager {
    pub(crate) socket: Option<InheritedSocket>,
    notifications: Option<Sender<String>>,
}

/// The listening socket that a service manager has bound and passed (`sd_listen_fds`).
pub(crate) struct InheritedSocket {
    pub(crate) listener: HttpListener,
    pub(crate) address: SocketAddr,
}

impl ServiceManager {
    /// Reads the variables of the protocols, and removes those of the socket. Must be called before the process has a
    /// second thread.
    ///
    /// # Errors
    /// If a socket was passed that cannot be served.
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        Ok(Self { socket: take_socket()?, notifications: start_notifier()? })
    }

    pub(crate) const fn is_present(&self) -> bool {
        self.socket.is_some() || self.notifications.is_some()
    }

    /// Reports the end of the start.
    pub(crate) fn ready(&self, address: SocketAddr) {
        self.notify(&[NotifyState::Ready, NotifyState::Status(&format!("listening on {address}"))]);
    }

    /// Reports the first signal. The manager must not kill the process within `timeout`.
    pub(crate) fn stopping(&self, timeout: Duration) {
        let micros = u32::try_from((timeout + STOP_MARGIN).as_micros()).unwrap_or(u32::MAX);
        let extension = NotifyState::ExtendTimeoutUsec(micros);
        self.notify(&[NotifyState::Stopping, extension, NotifyState::Status("shutting down")]);
    }

    fn notify(&self, states: &[NotifyState<'_>]) {
        if let Some(notifications) = &self.notifications {
            let lines: Vec<_> = states.iter().map(ToString::to_string).collect();
            // The thread ends after this sender.
            let _ = notifications.send(lines.join("\n"));
        }
    }
}

/// Takes the socket that `LISTEN_FDS` and `LISTEN_PID` announce, and removes both variables. Exactly one listening TCP
/// socket is accepted, because the clients of a socket that is not served would wait for ever.
fn take_socket() -> anyhow::Result<Option<InheritedSocket>> {
    let mut sockets = ListenFd::from_env();
    match sockets.len() {
        0 => return Ok(None),
        1 => {}
        count => bail!("the service manager passed {count} sockets (LISTEN_FDS): pass exactly one"),
    }
    let Ok(Some(socket)) = sockets.take_tcp_listener(0) else {
        bail!(
            "the service manager passed no listening TCP socket (LISTEN_FDS): set ListenStream to an IP address with a \
             port"
        )
    };
    let address = socket.local_addr()?;
    let listener = HttpListener::inherited(socket).context("the service manager passed a socket (LISTEN_FDS)")?;
    Ok(Some(InheritedSocket { listener, address }))
}

/// Starts the thread that sends the notifications in order: the library blocks while the manager does not read.
fn start_notifier() -> io::Result<Option<Sender<String>>> {
    if env::var_os("NOTIFY_SOCKET").is_none_or(|path| path.is_empty()) {
        return Ok(None);
    }
    let (sender, receiver) = channel::<String>();
    thread::Builder::new().name("notifier".to_owned()).spawn(move || {
        for message in receiver {
            if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&message)]) {
                tracing::debug!(%error, "the service manager cannot be notified");
            }
        }
    })?;
    Ok(Some(sender))
}
