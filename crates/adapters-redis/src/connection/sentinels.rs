//! The Sentinels that know which server is the master of a service.
//!
//! More than half of the Sentinels in the URL must name the same master. One that was cut off or has just started may
//! name a master that the others have replaced, and that accepts revoked keys.

use std::fmt;

use futures_util::{StreamExt, stream::FuturesUnordered};
use redis::{
    ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError, RedisResult,
    TlsCertificates, TlsMode,
    sentinel::{SentinelClientBuilder, SentinelServerType},
};
use secrecy::{ExposeSecret, SecretString};

pub(super) struct Sentinels {
    pub(super) addresses: Vec<ConnectionAddr>,
    /// The name of the master in the configuration of the Sentinels.
    pub(super) service: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<SecretString>,
    /// For TLS with the Sentinels and with the server.
    pub(super) certificates: Option<TlsCertificates>,
}

impl Sentinels {
    /// Asks all Sentinels for the address of the master, which has to confirm that it is one. `server` has the login
    /// for it.
    pub(super) async fn find_master(&self, server: &ConnectionInfo) -> RedisResult<ConnectionAddr> {
        let mut answers: FuturesUnordered<_> = self
            .addresses
            .iter()
            .map(|sentinel| self.ask(sentinel, server))
            .collect();
        let mut named = Vec::new();
        let mut failure =
            RedisError::from((ErrorKind::Client, "the Sentinels name different masters"));
        while let Some(answer) = answers.next().await {
            match answer {
                Err(error) => failure = error,
                Ok(master) => {
                    named.push(master.clone());
                    if named.iter().filter(|other| **other == master).count()
                        > self.addresses.len() / 2
                    {
                        return Ok(master);
                    }
                }
            }
        }
        Err(failure)
    }

    /// Opens connections of its own: one that was kept may hang.
    async fn ask(
        &self,
        sentinel: &ConnectionAddr,
        server: &ConnectionInfo,
    ) -> RedisResult<ConnectionAddr> {
        let login = server.redis_settings();
        let builder = SentinelClientBuilder::new(
            [sentinel.clone()],
            &self.service,
            SentinelServerType::Master,
        )?;
        let mut builder = builder.set_client_to_redis_db(login.db());
        // With RESP3, the reason for a refused login is that of the server.
        builder = builder.set_client_to_redis_protocol(ProtocolVersion::RESP3);
        builder = builder.set_client_to_sentinel_protocol(ProtocolVersion::RESP3);
        if let Some(user) = login.username() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = login.password() {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(user) = &self.user {
            builder = builder.set_client_to_sentinel_username(user);
        }
        if let Some(password) = &self.password {
            builder = builder.set_client_to_sentinel_password(password.expose_secret());
        }
        if let Some(certificates) = &self.certificates {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
            builder = builder.set_client_to_redis_certificates(certificates.clone());
            builder = builder.set_client_to_sentinel_certificates(certificates.clone());
        }
        Ok(builder
            .build()?
            .async_get_client()
            .await?
            .get_connection_info()
            .addr()
            .clone())
    }
}

/// Prints the service and the addresses: the rest may be secret.
impl fmt::Display for Sentinels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        write!(formatter, "{} of {}", self.service, addresses.join(","))
    }
}
