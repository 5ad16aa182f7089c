//! The service manager that started the process: systemd, or another one with its protocols.
//!
//! **Problem.** A restart must not refuse a connection, and the manager must know whether the process serves: a start
//! that it believes finished is an outage that it does not repair.
//!
//! **Invariant.** A socket that the manager passes is served in place of `http.listen` and is left as it is at the end
//! ([`inherited_socket`]). `READY=1` is sent when connections are served. A manager that does not read its
//! notifications delays nothing ([`notifier`]). Without a manager, none of this costs anything.
//!
//! **Proof.** `socket_activation.rs` and `service_manager.rs` in `crates/server/tests/process`.

mod inherited_socket;
mod notifier;

pub(crate) use self::{inherited_socket::InheritedSocket, notifier::Notifier};

/// The service manager, or its absence.
pub(crate) struct ServiceManager {
    pub(crate) socket: Option<InheritedSocket>,
    pub(crate) notifier: Notifier,
}

impl ServiceManager {
    /// Reads the variables of the protocols, and removes those of the socket. Must be called before the process has a
    /// second thread.
    ///
    /// # Errors
    /// If a socket was passed that cannot be served.
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        Ok(Self { socket: InheritedSocket::take()?, notifier: Notifier::start()? })
    }

    /// Whether a service manager has started the process. Its journal has the standard error of the process.
    pub(crate) const fn is_present(&self) -> bool {
        self.socket.is_some() || self.notifier.is_enabled()
    }
}
