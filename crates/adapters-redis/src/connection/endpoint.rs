use std::{convert::Infallible, fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, ProtocolVersion, PushInfo,
    RedisResult, TlsCertificates, aio::MultiplexedConnection, io::tcp::TcpSettings,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

/// A Redis server and how to connect to it.
#[derive(Clone)]
pub struct RedisEndpoint(Arc<Client>);

/// Certificates for TLS, in PEM.
#[derive(Debug, Default)]
pub struct RedisTls {
    /// Authorities that may have signed the server's certificate. `None`: the authorities of the system.
    pub authority: Option<String>,
    /// The client's certificate and its private key, for a server that requires them.
    pub client: Option<(String, SecretString)>,
}

/// The endpoint is not valid. The messages contain no secret.
#[derive(Debug, Error)]
pub enum RedisEndpointError {
    /// The text is not the URL of a Redis server.
    #[error(
        "must be redis://[user:password@]host[:port][/database], rediss://… for TLS, or \
         unix:///path[?db=number&user=name&pass=password]"
    )]
    Url,
    /// The URL turns the verification of the server's certificate off.
    #[error("must not end in #insecure: the server's certificate would not be verified")]
    Insecure,
    /// Certificates are given for a connection without TLS.
    #[error("must begin with rediss:// if certificates are given")]
    NoTls,
    /// [`RedisTls::authority`] is not valid.
    #[error("must contain certificates of authorities in PEM")]
    Authority,
    /// The certificate of [`RedisTls::client`] is not valid.
    #[error("must contain a certificate in PEM")]
    ClientCertificate,
    /// The private key of [`RedisTls::client`] is not valid.
    #[error("must contain a private key in PEM")]
    ClientKey,
}

impl RedisEndpoint {
    /// Parses a URL and the certificates.
    ///
    /// # Errors
    /// See [`RedisEndpointError`].
    pub fn parse(url: &SecretString, tls: RedisTls) -> Result<Self, RedisEndpointError> {
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
        let settings = login.clone().set_protocol(ProtocolVersion::RESP3);
        let settings = settings.set_lib_name("animal-store", env!("CARGO_PKG_VERSION"));
        // With Nagle's algorithm, a lookup may wait 40 ms for the acknowledgement of the lookup before it.
        let tcp = TcpSettings::default().set_nodelay(true);
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        let client = if encrypted {
            tls.check()?;
            // If another part of the process installed a provider first, that one is used.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let client_tls = tls.client.map(|(certificate, key)| ClientTlsConfig {
                client_cert: certificate.into_bytes(),
                client_key: key.expose_secret().as_bytes().to_vec(),
            });
            let certificates = TlsCertificates { root_cert: tls.authority.map(String::into_bytes), client_tls };
            // The PEM is valid: an authority is the only part that the driver can still refuse.
            Client::build_with_tls(info, certificates).map_err(|_| RedisEndpointError::Authority)?
        } else if tls.authority.is_some() || tls.client.is_some() {
            return Err(RedisEndpointError::NoTls);
        } else {
            Client::open(info).map_err(|_| RedisEndpointError::Url)?
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

impl RedisTls {
    /// Checks that each text is PEM and contains a certificate or a key: the driver accepts an authority without one.
    ///
    /// # Errors
    /// The [`RedisEndpointError`] of the first text that is not valid.
    pub fn check(&self) -> Result<(), RedisEndpointError> {
        let is_valid = |text: &String| {
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
            certificates.is_ok_and(|certificates| !certificates.is_empty())
        };
        if !self.authority.iter().all(is_valid) {
            return Err(RedisEndpointError::Authority);
        }
        let Some((certificate, key)) = &self.client else { return Ok(()) };
        if !is_valid(certificate) {
            return Err(RedisEndpointError::ClientCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes());
        key.map(drop).map_err(|_| RedisEndpointError::ClientKey)
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
