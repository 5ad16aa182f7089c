//! The addresses of the service.

use std::{io::ErrorKind, net::SocketAddr};

use animal_store_http1::HttpListener;
use anyhow::anyhow;

use crate::config::Config;

/// The listeners of the service. Clients can connect; their connections wait in the sockets until the application runs.
pub(crate) struct Listeners {
    pub(crate) api: HttpListener,
    pub(crate) management: Option<HttpListener>,
}

impl Listeners {
    /// Binds the configured addresses. An inherited socket replaces `http.listen`.
    ///
    /// # Errors
    /// If an address cannot be bound. The message names its setting.
    pub(crate) fn bind(config: &Config, inherited: Option<HttpListener>) -> anyhow::Result<Self> {
        let api = match inherited {
            Some(listener) => listener,
            None => bind(config.listen, "http.listen")?,
        };
        let management = match config.management {
            Some(address) => Some(bind(address, "management.listen")?),
            None => None,
        };
        Ok(Self { api, management })
    }
}

/// Binds the address of a setting.
fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<HttpListener> {
    HttpListener::bind(address).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::AddrInUse => {
                "address already in use: stop the process that uses it, or set another address"
            }
            ErrorKind::AddrNotAvailable => "no network interface of this machine has this address",
            ErrorKind::PermissionDenied => {
                "permission denied: a port below 1024 may need a privilege"
            }
            _ => &error.to_string(),
        };
        anyhow!("cannot listen on {address} ({setting}): {reason}")
    })
}
