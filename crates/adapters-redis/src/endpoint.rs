use std::{fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, ProtocolVersion, PushInfo,
    RedisResult, TlsCertificates, aio::MultiplexedConnection, io::tcp::TcpSettings,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

/// A Redis server and how to reach it.
#[derive(Clone)]
pub struct RedisEndpoint {
    client: Arc<Client>,
}

/// Certificates, in PEM, for a server that speaks TLS.
#[derive(Debug, Default)]
pub struct Tls {
    /// Who may have signed the server's certificate; the authorities of the system where there is none.
    pub authority: Option<String>,
    /// Our own certificate and its key, for a server that asks for one.
    pub client: Option<(String, SecretString)>,
}

/// Why there can be no such endpoint. Nothing secret is part of it.
#[derive(Debug, Error)]
pub enum RedisEndpointError {
    /// The URL is none of a Redis server.
    #[error(
        "must be redis://[user:password@]host[:port][/database], rediss://… for TLS, or \
         unix:///path[?db=number&user=name&pass=password]"
    )]
    Url,
    /// The URL asks for TLS that does not look at the server's certificate.
    #[error("must not end in #insecure: nothing would tell the server from an impostor")]
    Insecure,
    /// There are certificates, and nothing that wants them.
    #[error("must begin with rediss:// where certificates are given")]
    NoTls,
    /// The certificates are none.
    #[error("cannot be used with these certificates: {0}")]
    Certificates(String),
}

impl RedisEndpoint {
    /// The server at this URL.
    ///
    /// # Errors
    /// See [`RedisEndpointError`].
    pub fn new(url: &SecretString, tls: Tls) -> Result<Self, RedisEndpointError> {
        let info = url.expose_secret().into_connection_info().map_err(|_| RedisEndpointError::Url)?;
        let login = info.redis_settings();
        if login.db() < 0 || login.username().is_some() && login.password().is_none() {
            return Err(RedisEndpointError::Url);
        }
        let encrypted = match info.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => return Err(RedisEndpointError::Insecure),
            ConnectionAddr::TcpTls { .. } => true,
            _ => false,
        };
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let settings = settings.set_lib_name("animal-store", env!("CARGO_PKG_VERSION"));
        // Without it, a look-up may wait 40 ms for the acknowledgement of the one before.
        let tcp = TcpSettings::default().set_nodelay(true);
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        if !encrypted {
            if tls.authority.is_some() || tls.client.is_some() {
                return Err(RedisEndpointError::NoTls);
            }
            let client = Client::open(info).map_err(|_| RedisEndpointError::Url)?;
            return Ok(Self { client: Arc::new(client) });
        }
        if !tls.holds_certificates() {
            return Err(RedisEndpointError::Certificates("a text that should hold one holds none".to_owned()));
        }
        // Where another part of the process has chosen already, its choice serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::build_with_tls(info, tls.into());
        let client = client.map_err(|error| RedisEndpointError::Certificates(error.to_string()))?;
        Ok(Self { client: Arc::new(client) })
    }

    /// A new connection. It is open within `timeout`, answers within `timeout`, and tells `on_push` what the server
    /// says unasked, in the order in which everything arrives.
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
                Ok::<_, std::convert::Infallible>(())
            });
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }
}

impl Tls {
    /// The driver would take a text that holds none for an authority that signs nothing.
    fn holds_certificates(&self) -> bool {
        let mut texts = self.authority.iter().chain(self.client.iter().map(|(certificates, _)| certificates));
        texts.all(|text| CertificateDer::pem_slice_iter(text.as_bytes()).next().is_some())
    }
}

impl From<Tls> for TlsCertificates {
    fn from(tls: Tls) -> Self {
        Self {
            root_cert: tls.authority.map(String::into_bytes),
            client_tls: tls.client.map(|(certificate, key)| ClientTlsConfig {
                client_cert: certificate.into_bytes(),
                client_key: key.expose_secret().as_bytes().to_vec(),
            }),
        }
    }
}

/// The address alone: the rest of the URL may be secret.
impl fmt::Display for RedisEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.get_connection_info().addr().fmt(formatter)
    }
}

impl fmt::Debug for RedisEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisEndpoint({self})")
    }
}
