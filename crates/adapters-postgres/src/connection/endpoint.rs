mod url;

use std::{fmt, slice, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{
    CancelToken, Client, Config, NoTls, Socket,
    config::{Host, SslMode},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use self::url::PgEndpointError;
use super::tls;
use crate::error::ConnectionError;

/// A PostgreSQL database and how to connect to it. It is displayed as its hosts and its name, without secrets.
#[derive(Clone)]
pub struct PgEndpoint {
    /// One per host, in the order in which they are tried.
    configs: Vec<Config>,
    /// `None` if no connection is encrypted.
    tls: Option<MakeRustlsConnect>,
}

/// The task that reads and writes a connection. Dropping it closes the connection.
pub(crate) struct ConnectionTask(JoinHandle<Result<(), tokio_postgres::Error>>);

impl PgEndpoint {
    /// Parses a URL: `postgres://user:password@host:port/database?option=value`. The options are those of
    /// tokio-postgres, and libpq's `sslmode` and `sslrootcert` (a file with certificates, or `system`).
    ///
    /// # Errors
    /// See [`PgEndpointError`].
    pub fn parse(url: &SecretString) -> Result<Self, PgEndpointError> {
        let (configs, certificate_check) = url::parse(url.expose_secret())?;
        let tls = certificate_check.as_ref().map(tls::connector).transpose();
        let tls =
            tls.map_err(|error| PgEndpointError::new(format!("has an sslrootcert that cannot be used: {error}")))?;
        Ok(Self { configs, tls })
    }

    /// Parses a URL without reading certificates, and returns every text that is shown of it, for the fuzz targets.
    ///
    /// # Errors
    /// See [`PgEndpointError`].
    #[cfg(fuzzing)]
    pub fn shown(url: &str) -> Result<[String; 3], PgEndpointError> {
        let endpoint = Self { configs: url::parse(url)?.0, tls: None };
        Ok([endpoint.to_string(), endpoint.login(), format!("{endpoint:?}")])
    }

    /// Names the connections, unless the URL does.
    pub(crate) fn with_application_name(mut self, name: &str) -> Self {
        for config in self.configs.iter_mut().filter(|config| config.get_application_name().is_none()) {
            config.application_name(name);
        }
        self
    }

    /// Opens a connection within the timeout, of which each host has an equal share. Its task runs on the current
    /// runtime.
    pub(crate) async fn connect(&self, connect_timeout: Duration) -> Result<(Client, ConnectionTask), ConnectionError> {
        let share = connect_timeout / u32::try_from(self.configs.len()).unwrap_or(u32::MAX);
        let mut errors = Vec::new();
        for config in &self.configs {
            match timeout(share, self.connect_to(config)).await.unwrap_or(Err(ConnectionError::NoResponse)) {
                Ok(connected) => return Ok(connected),
                Err(error) => errors.push((login(slice::from_ref(config)), error)),
            }
        }
        Err(ConnectionError::Located(errors))
    }

    /// Adds user, hosts and database to an error. PostgreSQL's own text names the object of a missing privilege, but
    /// not the user who lacks it.
    pub(crate) fn locate(&self, error: impl Into<ConnectionError>) -> ConnectionError {
        ConnectionError::Located(vec![(self.login(), error.into())])
    }

    /// Returns user, hosts and database.
    pub(crate) fn login(&self) -> String {
        login(&self.configs)
    }

    async fn connect_to(&self, config: &Config) -> Result<(Client, ConnectionTask), ConnectionError> {
        let Some(tls) = self.tls.as_ref().filter(|_| config.get_ssl_mode() != SslMode::Disable) else {
            return open(config, NoTls).await;
        };
        match open(config, tls.clone()).await {
            Err(error) if config.get_ssl_mode() == SslMode::Prefer && error.may_be_about_encryption() => {
                let mut plain = config.clone();
                // The error of the first attempt is reported.
                open(plain.ssl_mode(SslMode::Disable), NoTls).await.map_err(|_| error)
            }
            result => result,
        }
    }

    /// Cancels the statement that the server still runs for a lost connection. A failure is ignored.
    pub(crate) async fn cancel(&self, token: CancelToken, cancel_timeout: Duration) {
        let cancelling = async {
            match &self.tls {
                None => token.cancel_query(NoTls).await,
                Some(tls) => token.cancel_query(tls.clone()).await,
            }
        };
        let _ = timeout(cancel_timeout, cancelling).await;
    }

    pub(crate) fn log_unavailable(&self, reason: &str) {
        tracing::error!(address = %self, reason, "no connection to PostgreSQL: requests get 503");
    }
}

async fn open<T>(config: &Config, tls: T) -> Result<(Client, ConnectionTask), ConnectionError>
where
    T: MakeTlsConnect<Socket, Stream: Send + 'static> + Send,
    T::TlsConnect: Send,
    <T::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls).await?;
    let encoding = connection.parameter("server_encoding").unwrap_or_default().to_owned();
    let task = ConnectionTask::spawn(connection);
    if encoding == "UTF8" { Ok((client, task)) } else { Err(ConnectionError::NotUtf8(encoding)) }
}

impl ConnectionTask {
    pub(crate) fn spawn(connection: impl Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static) -> Self {
        Self(tokio::spawn(connection))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

    pub(crate) async fn ended(&mut self) -> ConnectionError {
        match (&mut self.0).await {
            Ok(Err(error)) => error.into(),
            Ok(Ok(())) | Err(_) => ConnectionError::Closed,
        }
    }
}

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
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

/// Returns the user of the configurations, and their [`address`].
fn login(configs: &[Config]) -> String {
    let user = configs[0].get_user().unwrap_or("(the user of this process)");
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
    format!("{}/{}", hosts.join(","), configs[0].get_dbname().unwrap_or_default())
}

#[cfg(test)]
mod tests;
