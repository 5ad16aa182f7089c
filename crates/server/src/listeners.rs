use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
};

use animal_store_adapters_http::HttpListener;
use anyhow::anyhow;

use crate::config::Config;

/// The listeners of the service. Connections are accepted; they are served once the application runs.
pub(crate) struct Listeners {
    pub(crate) api: HttpListener,
    pub(crate) address: SocketAddr,
    pub(crate) management: Option<(SocketAddr, HttpListener)>,
}

impl Listeners {
    /// Binds the configured addresses. An inherited socket replaces `http.listen`.
    ///
    /// # Errors
    /// If an address cannot be bound. The message names its key.
    pub(crate) fn bind(config: &Config, inherited: Option<(SocketAddr, HttpListener)>) -> anyhow::Result<Self> {
        let (address, api) = inherited.map_or_else(|| bind(config.listen, "http.listen"), Ok)?;
        let management = config.management.map(|address| bind(address, "management.listen")).transpose()?;
        Ok(Self { api, address, management })
    }
}

/// Binds the address that a configuration key sets.
fn bind(address: SocketAddr, key: &str) -> anyhow::Result<(SocketAddr, HttpListener)> {
    let bound = TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (bound, listener) = bound.map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::AddrInUse => "address already in use: stop the process that uses it, or set another address",
            ErrorKind::AddrNotAvailable => "no network interface of this machine has this address",
            ErrorKind::PermissionDenied => "permission denied: a port below 1024 may need a privilege",
            _ => &error.to_string(),
        };
        anyhow!("cannot listen on {address} ({key}): {reason}")
    })?;
    Ok((bound, HttpListener::new(listener)))
}
