use std::{fmt, sync::Arc};

use animal_store_adapter_kit::is_this_machine;
use redis::{
    Client, ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisResult, TlsCertificates,
    io::tcp::TcpSettings,
};
use rustls::crypto::ring::default_provider;
use secrecy::{ExposeSecret, SecretString};

use super::{
    error::RedisEndpointError::{self, NoTls, Url},
    sentinels::{Master, Sentinel, Sentinels},
    tls::RedisTls,
    url::{Service, parse_url},
};

/// Name of each connection and of its library in `CLIENT LIST`.
pub(super) const CLIENT_NAME: &str = "animal-store";

/// A Redis server and how to connect to it.
#[derive(Clone)]
pub struct RedisEndpoint {
    pub(super) client: Arc<Client>,
    /// They know the address of the server. The client has the rest.
    pub(super) sentinels: Option<Arc<Sentinels>>,
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
            Some(service) => Some(open_sentinels(service, tls.as_ref())?),
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
) -> Result<Arc<Sentinels>, RedisEndpointError> {
    let mut members = Vec::new();
    for info in service.sentinels {
        let client = open(info, tls)?;
        members.push(Arc::new(Sentinel::new(client)));
    }
    Ok(Arc::new(Sentinels {
        service: service.name,
        members,
    }))
}

#[cfg(test)]
mod tests;
