mod url;

use std::{fmt, fs, path::Path, process, slice, time::Duration};

use animal_store_adapter_kit::is_this_machine;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use tokio_postgres::{
    CancelToken, Config,
    config::{Host, SslMode, TargetSessionAttrs},
};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use self::url::PgEndpointError;
use super::{ConnectionTask, OpenConnection, tls, within::within};
use crate::error::ConnectionError;

/// Name of a connection that does not name its instance.
const APPLICATION_NAME: &str = "animal-store";

/// A PostgreSQL database and how to connect to it. It is displayed as its hosts and its name, without secrets.
#[derive(Clone)]
pub struct PgEndpoint {
    /// One per host, in the order in which they are tried.
    configs: Vec<Config>,
    tls: MakeRustlsConnect,
    /// A file with the authorities of the server's certificate, or `system`. `None`: it is not checked.
    authorities: Option<String>,
    /// Whether a connection ends when its server reports that it is read-only.
    follows_primary: bool,
}

impl PgEndpoint {
    /// Parses a URL: `postgres://user:password@host:port/database?option=value`. The options are those of
    /// tokio-postgres, and libpq's `sslmode` and `sslrootcert` (a file with certificates, or `system`).
    ///
    /// # Errors
    /// See [`PgEndpointError`].
    pub fn parse(url: &SecretString) -> Result<Self, PgEndpointError> {
        let url = url::parse(url.expose_secret())?;
        let tls = tls::connector(&url.certificate_check);
        let tls = tls.map_err(|error| {
            PgEndpointError(format!("has an sslrootcert that cannot be used: {error}"))
        })?;
        Ok(Self {
            configs: url.configs,
            tls,
            authorities: url.certificate_check.roots,
            follows_primary: false,
        })
    }

    /// Returns whether a connection leaves this machine without TLS, or with a certificate that is not checked.
    pub fn is_exposed(&self) -> bool {
        let has_authorities = self.authorities.is_some();
        self.configs.iter().any(|config| {
            let is_checked = has_authorities && config.get_ssl_mode() == SslMode::Require;
            !is_checked && !is_local(config)
        })
    }

    /// Returns the file with the authorities that may have signed the server's certificate.
    pub fn authorities(&self) -> Option<&Path> {
        let file = self.authorities.as_deref().filter(|&name| name != "system");
        file.map(Path::new)
    }

    /// Parses a URL without reading certificates, and returns every text that is shown of it, for the fuzz targets.
    ///
    /// # Errors
    /// See [`PgEndpointError`].
    #[cfg(feature = "fuzzing")]
    pub fn shown(url: &str) -> Result<[String; 2], PgEndpointError> {
        let configs = url::parse(url)?.configs;
        Ok([address(&configs), login(&configs)])
    }

    /// Names the connections after this process, unless the URL does.
    pub(crate) fn named(mut self, transaction_pooling: bool) -> Self {
        for config in &mut self.configs {
            if config.get_application_name().is_none() {
                config.application_name(application_name(transaction_pooling));
            }
        }
        self
    }

    /// Names the connections, and refuses servers that are read-only: their pets may be out of date. A statement asks
    /// each server that is connected to, because a standby may have the address of the primary during a fail-over.
    pub(crate) fn of_primary(self, transaction_pooling: bool) -> Self {
        let mut named = self.named(transaction_pooling);
        for config in &mut named.configs {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        named.follows_primary = !transaction_pooling;
        named
    }

    /// Opens a connection within the timeout, of which each host has an equal share. Its task runs on the current
    /// runtime.
    pub(crate) async fn connect(
        &self,
        connect_timeout: Duration,
    ) -> Result<OpenConnection, ConnectionError> {
        let share = connect_timeout / u32::try_from(self.configs.len()).unwrap_or(u32::MAX);
        let mut errors = Vec::new();
        for config in &self.configs {
            let error = match timeout(share, self.connect_to(config)).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => error,
                Err(_) => ConnectionError::NoResponse,
            };
            errors.push((login(slice::from_ref(config)), error));
        }
        Err(ConnectionError::Located(errors))
    }

    /// Adds user, hosts and database to an error. PostgreSQL's own text names the object of a missing privilege, but
    /// not the user who lacks it.
    pub(crate) fn locate(&self, error: impl Into<ConnectionError>) -> ConnectionError {
        ConnectionError::Located(vec![(self.login(), error.into())])
    }

    /// Waits for a response. An error has user, hosts and database.
    pub(crate) async fn within<T, E: Into<ConnectionError>>(
        &self,
        limit: Duration,
        response: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ConnectionError> {
        within(limit, response)
            .await
            .map_err(|error| self.locate(error))
    }

    /// Returns whether both connect as the same user.
    pub(crate) fn has_user_of(&self, other: &Self) -> bool {
        self.configs[0].get_user() == other.configs[0].get_user()
    }

    /// Returns user, hosts and database.
    pub(crate) fn login(&self) -> String {
        login(&self.configs)
    }

    async fn connect_to(&self, config: &Config) -> Result<OpenConnection, ConnectionError> {
        let error = match self.open(config).await {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        if config.get_ssl_mode() != SslMode::Prefer || !error.may_be_about_encryption() {
            return Err(error);
        }
        let mut plain = config.clone();
        plain.ssl_mode(SslMode::Disable);
        // The error of the first attempt is reported.
        self.open(&plain).await.map_err(|_| error)
    }

    async fn open(&self, config: &Config) -> Result<OpenConnection, ConnectionError> {
        let (client, connection) = config.connect(self.tls.clone()).await?;
        let encoding = connection.parameter("server_encoding").unwrap_or_default();
        let encoding = encoding.to_owned();
        let task = ConnectionTask::of(connection, self.follows_primary);
        if encoding != "UTF8" {
            return Err(ConnectionError::NotUtf8(encoding));
        }
        Ok(OpenConnection { client, task })
    }

    /// Cancels the statement that the server still runs for a lost connection. A failure is ignored.
    pub(crate) async fn cancel(&self, token: CancelToken, cancel_timeout: Duration) {
        let _ = timeout(cancel_timeout, token.cancel_query(self.tls.clone())).await;
    }

    pub(crate) fn log_unavailable(&self, reason: &str) {
        tracing::error!(address = %self, reason, "no connection to PostgreSQL: requests get 503");
    }
}

impl fmt::Display for PgEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&address(&self.configs))
    }
}

impl fmt::Debug for PgEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PgEndpoint({self})")
    }
}

/// Returns whether every host of a configuration is this machine.
fn is_local(config: &Config) -> bool {
    for address in config.get_hostaddrs() {
        if !is_this_machine(&address.to_string()) {
            return false;
        }
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => is_this_machine(name),
        Host::Unix(_) => true,
    })
}

/// Returns the user of the configurations, and their [`address`].
fn login(configs: &[Config]) -> String {
    let user = configs[0].get_user().unwrap_or_default();
    format!("{user}@{}", address(configs))
}

fn address(configs: &[Config]) -> String {
    let mut hosts = Vec::new();
    for config in configs {
        let ports = config.get_ports();
        for (index, host) in config.get_hosts().iter().enumerate() {
            let port = ports.get(index).or(ports.first()).unwrap_or(&5432);
            hosts.push(match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(folder) => format!("{}:{port}", folder.display()),
            });
        }
    }
    let hosts = hosts.join(",");
    let database = configs[0].get_dbname().unwrap_or_default();
    format!("{hosts}/{database}")
}

/// Returns the name of a connection in `pg_stat_activity`: the program, this host and the id of this process. Behind a
/// transaction pooler, only the program: a pooler sets the name again for each transaction that follows one of another
/// instance.
fn application_name(transaction_pooling: bool) -> String {
    if transaction_pooling {
        return APPLICATION_NAME.to_owned();
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // PostgreSQL cuts longer names than 63 bytes off.
    format!("{APPLICATION_NAME} {:.32} {}", host.trim(), process::id())
}

#[cfg(test)]
mod tests;
