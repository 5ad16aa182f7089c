use std::{convert::Infallible, fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ProtocolVersion, PushInfo, RedisResult, aio::MultiplexedConnection,
    io::tcp::TcpSettings,
};
use secrecy::{ExposeSecret, SecretString};

mod error;
mod tls;
mod url;

pub use error::RedisEndpointError;
pub use tls::RedisTls;

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
        let login = login.set_lib_name("animal-store", env!("CARGO_PKG_VERSION"));
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

    /// Opens a connection. `timeout` bounds opening it, and each response. `on_push` is called for each push message,
    /// in the order in which pushes and responses arrive.
    pub(crate) async fn connect(
        &self,
        timeout: Duration,
        on_push: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_push_sender(move |push| {
                on_push(push);
                Ok::<_, Infallible>(())
            });
        self.0.get_multiplexed_async_connection_with_config(&config).await
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
