use std::{fmt, sync::Arc};

use redis::{Client, ConnectionAddr, ProtocolVersion, io::tcp::TcpSettings};
use secrecy::{ExposeSecret, SecretString};

mod error;
mod tls;
mod url;

pub use error::RedisEndpointError;
pub use tls::RedisTls;

/// Name of each connection and of its library in `CLIENT LIST`.
pub(super) const CLIENT_NAME: &str = "animal-store";
/// The driver refused what the checks of the URL and of the certificates accept.
const UNSUPPORTED: RedisEndpointError = RedisEndpointError::Url("cannot be used");

/// A Redis server and how to connect to it.
#[derive(Clone)]
pub struct RedisEndpoint(Arc<Client>);

impl RedisEndpoint {
    /// Parses a URL and the certificates.
    ///
    /// # Errors
    /// See [`RedisEndpointError`].
    pub fn parse(url: &SecretString, tls: RedisTls) -> Result<Self, RedisEndpointError> {
        let info = url::parse(url.expose_secret())?;
        let login = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let login = login.set_lib_name(CLIENT_NAME, env!("CARGO_PKG_VERSION"));
        // With Nagle's algorithm, a lookup may wait 40 ms for the acknowledgement of the lookup before it.
        let tcp = TcpSettings::default().set_nodelay(true);
        let info = info.set_redis_settings(login).set_tcp_settings(tcp);
        let client = if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            // If another part of the process installed a provider first, that one is used.
            let _ = rustls::crypto::ring::default_provider().install_default();
            Client::build_with_tls(info, tls.certificates()?).map_err(|_| UNSUPPORTED)?
        } else if tls.is_empty() {
            Client::open(info).map_err(|_| UNSUPPORTED)?
        } else {
            return Err(RedisEndpointError::NoTls);
        };
        Ok(Self(Arc::new(client)))
    }

    pub(super) fn client(&self) -> &Client {
        &self.0
    }

    pub(super) fn user(&self) -> &str {
        self.0.get_connection_info().redis_settings().username().unwrap_or("default")
    }

    pub(super) fn uses_tls(&self) -> bool {
        matches!(self.0.get_connection_info().addr(), ConnectionAddr::TcpTls { .. })
    }
}

/// Prints only the address: the rest of the URL may be secret.
impl fmt::Display for RedisEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.get_connection_info().addr().fmt(formatter)
    }
}

impl fmt::Debug for RedisEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisEndpoint({self})")
    }
}

#[cfg(test)]
mod tests;
