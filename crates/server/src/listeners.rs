use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
};

use anyhow::anyhow;

use crate::config::Config;

/// The listeners of the service. Connections are accepted; they are served once the application runs.
pub(crate) struct Listeners {
    pub(crate) api: TcpListener,
    pub(crate) management: Option<TcpListener>,
}

impl Listeners {
    /// Binds the configured addresses.
    ///
    /// # Errors
    /// If an address cannot be bound. The message names its key.
    pub(crate) fn bind(config: &Config) -> anyhow::Result<Self> {
        let api = bind(config.http.listen, "http.listen")?;
        let management = config.management_listen.map(|address| bind(address, "management.listen")).transpose()?;
        Ok(Self { api, management })
    }
}

/// Binds the address that a configuration key sets.
fn bind(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::AddrInUse => "address already in use: stop the process that uses it, or set another address",
            ErrorKind::AddrNotAvailable => "no network interface of this machine has this address",
            ErrorKind::PermissionDenied => "permission denied: a port below 1024 may need a privilege",
            _ => return anyhow!("cannot listen on {address} ({key}): {error}"),
        };
        anyhow!("cannot listen on {address} ({key}): {reason}")
    })
}
