use std::{fmt, sync::Arc};

use animal_store_adapter_kit::is_this_machine;
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisResult,
    TlsCertificates, io::tcp::TcpSettings,
};
use rustls::{
    Error as TlsError, RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use self::RedisEndpointError::{Authority, Certificate, NoTls, PrivateKey, Url};
use super::{
    sentinels::{Master, Sentinel, Sentinels},
    url::{Service, parse_url},
};

/// Name of each connection and of its library in `CLIENT LIST`.
pub(super) const CLIENT_NAME: &str = "animal-store";
const INVALID_CERTIFICATE: &str = "contains a certificate that is not valid";

/// A Redis server and how to connect to it.
#[derive(Clone)]
pub struct RedisEndpoint {
    pub(super) client: Arc<Client>,
    /// They know the address of the server. The client has the rest.
    pub(super) sentinels: Option<Arc<Sentinels>>,
}

/// Certificates for TLS, in PEM.
#[derive(Debug, Clone, Default)]
pub struct RedisTls {
    /// Authorities that may have signed the server's certificate. `None`: the authorities of the system.
    pub authority: Option<String>,
    /// The client's certificate and its private key, for a server that requires them.
    pub client: Option<(String, SecretString)>,
}

/// The endpoint is not valid. The messages follow the name of a setting, and contain no secret.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum RedisEndpointError {
    /// This part of the URL is wrong.
    #[error(
        "{0}; it must be redis://[user:password@]host[:port][/database], rediss://… for TLS, \
         redis+sentinel://[user:password@]host[:port],…/service[/database], or \
         unix:///path[?db=number&user=name&pass=password]"
    )]
    Url(&'static str),
    /// Certificates are given for a connection without TLS.
    #[error("must begin with rediss:// if certificates are given")]
    NoTls,
    /// The certificate authorities cannot be used.
    #[error("{0}")]
    Authority(&'static str),
    /// The client's certificate cannot be used.
    #[error("{0}")]
    Certificate(&'static str),
    /// The private key of the client's certificate cannot be used.
    #[error("{0}")]
    PrivateKey(&'static str),
}

impl RedisEndpoint {
    /// Parses a URL and the certificates.
    ///
    /// # Errors
    /// See [`RedisEndpointError`].
    pub fn parse(url: &SecretString, tls: RedisTls) -> Result<Self, RedisEndpointError> {
        let url = parse_url(url.expose_secret()).map_err(Url)?;
        let tls = if uses_tls(&url.server) {
            // If another part of the process installed a provider first, that one is used.
            let _ = default_provider().install_default();
            Some(tls.certificates()?)
        } else if tls.authority.is_none() && tls.client.is_none() {
            None
        } else {
            return Err(NoTls);
        };
        let sentinels = match url.service {
            Some(service) => Some(Arc::new(open_sentinels(service, tls.as_ref())?)),
            None => None,
        };
        let login = url.server.redis_settings().clone();
        let login = login
            .set_protocol(ProtocolVersion::RESP3)
            .set_lib_name(CLIENT_NAME, env!("CARGO_PKG_VERSION"));
        // With Nagle's algorithm, a lookup may wait 40 ms for the acknowledgement of the lookup before it.
        let tcp = TcpSettings::default().set_nodelay(true);
        let server = url.server.set_redis_settings(login).set_tcp_settings(tcp);
        Ok(Self {
            client: Arc::new(open(server, tls.as_ref())?),
            sentinels,
        })
    }

    /// Returns the server at this address.
    pub(super) fn at(&self, master: Master) -> RedisResult<Self> {
        let info = self.client.get_connection_info().clone();
        let mut address = info.addr().clone();
        if let ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } =
            &mut address
        {
            *host = master.host;
            *port = master.port;
        }
        let info = info.set_addr(address);
        Ok(Self {
            client: Arc::new(Client::open(info)?),
            sentinels: None,
        })
    }

    /// Returns whether a connection leaves this machine without TLS, which always checks the certificate.
    pub fn is_exposed(&self) -> bool {
        match self.client.get_connection_info().addr() {
            // Sentinels on this machine can name a master on another one.
            ConnectionAddr::Tcp(host, _) => self.sentinels.is_some() || !is_this_machine(host),
            _ => false,
        }
    }

    pub(super) fn user(&self) -> &str {
        self.client
            .get_connection_info()
            .redis_settings()
            .username()
            .unwrap_or("default")
    }

    pub(super) fn uses_tls(&self) -> bool {
        uses_tls(self.client.get_connection_info())
    }
}

/// Prints only the address, or the service and its Sentinels: the rest of the URL may be secret.
impl fmt::Display for RedisEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sentinels {
            Some(sentinels) => sentinels.fmt(formatter),
            None => self.client.get_connection_info().addr().fmt(formatter),
        }
    }
}

impl fmt::Debug for RedisEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisEndpoint({self})")
    }
}

impl RedisTls {
    /// Checks the certificates, also if there is no URL to use them with. The driver reports an unusable certificate
    /// when it connects, or not at all.
    ///
    /// # Errors
    /// The first one that cannot be used.
    pub fn check(&self) -> Result<(), RedisEndpointError> {
        if let Some(authority) = &self.authority {
            let mut store = RootCertStore::empty();
            for certificate in certificates(authority).map_err(Authority)? {
                store
                    .add(certificate)
                    .map_err(|_| Authority(INVALID_CERTIFICATE))?;
            }
        }
        match &self.client {
            Some((certificate, key)) => check_client(certificate, key),
            None => Ok(()),
        }
    }

    fn certificates(self) -> Result<TlsCertificates, RedisEndpointError> {
        self.check()?;
        let client_tls = self.client.map(|(certificate, key)| ClientTlsConfig {
            client_cert: certificate.into_bytes(),
            client_key: key.expose_secret().as_bytes().to_vec(),
        });
        Ok(TlsCertificates {
            root_cert: self.authority.map(String::into_bytes),
            client_tls,
        })
    }
}

fn uses_tls(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

/// Creates a client, which connects later.
fn open(info: ConnectionInfo, tls: Option<&TlsCertificates>) -> Result<Client, RedisEndpointError> {
    let client = match tls {
        Some(certificates) => Client::build_with_tls(info, certificates.clone()),
        None => Client::open(info),
    };
    // The driver refused what the checks of the URL and of the certificates accept.
    client.map_err(|_| Url("cannot be used"))
}

fn open_sentinels(
    service: Service,
    tls: Option<&TlsCertificates>,
) -> Result<Sentinels, RedisEndpointError> {
    let mut members = Vec::new();
    for info in service.sentinels {
        members.push(Arc::new(Sentinel::new(open(info, tls)?)));
    }
    Ok(Sentinels {
        service: service.name,
        members,
    })
}

fn check_client(certificate: &str, key: &SecretString) -> Result<(), RedisEndpointError> {
    let chain = certificates(certificate).map_err(Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes()).map_err(|_| {
        PrivateKey("contains no private key in PEM format; a key that is protected by a password is not supported")
    })?;
    match CertifiedKey::from_der(chain, key, &default_provider()) {
        Ok(_) => Ok(()),
        Err(TlsError::InconsistentKeys(_)) => Err(PrivateKey(
            "contains the private key of another certificate",
        )),
        Err(TlsError::InvalidCertificate(_)) => Err(Certificate(INVALID_CERTIFICATE)),
        Err(_) => Err(PrivateKey(
            "contains a private key that is not valid, or not of a supported kind",
        )),
    }
}

/// Returns the certificates in a text: at least one. The parser's own messages repeat parts of the text.
fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let certificates =
        CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|_| INVALID_CERTIFICATE)?;
    if certificates.is_empty() {
        Err("contains no certificate in PEM format")
    } else {
        Ok(certificates)
    }
}

#[cfg(test)]
mod tests;
