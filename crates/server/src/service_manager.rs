//! The service manager that started the process: systemd, or another one with its protocols.
//!
//! **Problem.** A restart must not refuse a connection, and the manager must know whether the process serves: a start
//! that it believes finished is an outage that it does not repair.
//!
//! **Invariant.** A socket that the manager passes is served in place of `http.listen`, and stays open at the end.
//! `READY=1` is sent when connections are served. A manager that does not read its notifications delays nothing.
//!
//! **Proof.** `socket_activation.rs` and `service_manager.rs` in `crates/server/tests/process`.

use std::{env, net::SocketAddr, time::Duration};

use animal_store_http1::HttpListener;
use anyhow::{Context, ensure};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::task::spawn_blocking;

/// Time for the end of the process after `shutdown.timeout`.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// Returns whether a manager waits for notifications.
pub(crate) fn is_notified() -> bool {
    env::var_os("NOTIFY_SOCKET").is_some_and(|path| !path.is_empty())
}

/// Reports the end of the start.
pub(crate) fn notify_ready(address: SocketAddr) {
    notify(format!("READY=1\nSTATUS=listening on {address}"));
}

/// Reports the first signal. The manager must not kill the process within `timeout`.
pub(crate) fn notify_stopping(timeout: Duration) {
    let micros = (timeout + STOP_MARGIN).as_micros();
    notify(format!(
        "STOPPING=1\nEXTEND_TIMEOUT_USEC={micros}\nSTATUS=shutting down"
    ));
}

/// Sends a message, if there is a manager, by a thread of its own: the library blocks while the manager does not read.
fn notify(message: String) {
    spawn_blocking(move || {
        if is_notified()
            && let Err(error) = sd_notify::notify(&[NotifyState::Custom(&message)])
        {
            tracing::debug!(%error, "the service manager cannot be notified");
        }
    });
}

/// Takes the socket that `LISTEN_FDS` and `LISTEN_PID` announce, and removes both variables. Must be called before the
/// process has a second thread.
///
/// # Errors
/// Unless it is exactly one listening TCP socket: the clients of a socket that is not served would wait for ever.
pub(crate) fn take_socket() -> anyhow::Result<Option<HttpListener>> {
    let mut sockets = ListenFd::from_env();
    let count = sockets.len();
    if count == 0 {
        return Ok(None);
    }
    ensure!(
        count == 1,
        "the service manager passed {count} sockets (LISTEN_FDS): pass exactly one"
    );
    let socket = sockets.take_tcp_listener(0).ok().flatten().context(
        "the service manager passed no listening TCP socket (LISTEN_FDS): set ListenStream to an address with a port",
    )?;
    HttpListener::inherited(socket)
        .map(Some)
        .context("the service manager passed a socket (LISTEN_FDS)")
}
