use std::{fmt, fs, time::Duration};

use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{
    Client, Config, NoTls, Socket,
    config::{Host, SslMode},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    error::ConnectionError,
    tls::{self, Check, Roots},
};

/// How long a connection may be silent before the system asks whether its peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A PostgreSQL database and how to reach it.
#[derive(Clone)]
pub struct PgEndpoint {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    /// Whether plain text will do where encryption cannot be had.
    plain_will_do: bool,
}

/// Why there can be no such endpoint. Nothing secret is part of it.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// The URL is none of a PostgreSQL database.
    #[error(
        "must be postgres://[user[:password]@]host[:port]/database[?option=value&…], or have the folder of a Unix \
         socket as its option host; any other @ is written %40"
    )]
    Url,
    /// The URL has an option that is not known here, or a value of one.
    #[error("has an option, or a value of one, that is not supported")]
    Option,
    /// The mode of encryption is none of libpq's.
    #[error("must have an sslmode of disable, prefer, require, verify-ca or verify-full")]
    SslMode,
    /// The authorities are none.
    #[error("has an sslrootcert that cannot be used: {0}")]
    RootCertificates(String),
}

/// A connection that is open, and what reads and writes it. It closes when that is dropped.
pub(crate) struct Opened {
    pub(crate) client: Client,
    pub(crate) driver: Driver,
}

pub(crate) struct Driver(JoinHandle<Result<(), tokio_postgres::Error>>);

impl PgEndpoint {
    /// The database at this URL. Of libpq's options, those of tokio-postgres are known, `sslmode` and `sslrootcert`
    /// (a file, or `system`).
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn new(url: &SecretString) -> Result<Self, EndpointError> {
        let url = url.expose_secret();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(EndpointError::Url);
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        // Another @ may be a part of the password, which the rest is then, too; hosts and the database are shown.
        if url.matches('@').count() > 1 || query.contains('@') {
            return Err(EndpointError::Url);
        }
        let is_ours = |option: &&str| ["sslmode", "sslrootcert"].contains(&&*decoded(name_and_value(option).0));
        let (ours, theirs): (Vec<_>, Vec<_>) = query.split('&').partition(is_ours);
        base.parse::<Config>().map_err(|_| EndpointError::Url)?;
        let url = format!("{base}?{}", theirs.join("&"));
        let mut config: Config = url.parse().map_err(|_| EndpointError::Option)?;
        let named = |host: &Host| !matches!(host, Host::Tcp(name) if name.is_empty());
        if config.get_dbname().is_none() || config.get_hosts().is_empty() || !config.get_hosts().iter().all(named) {
            return Err(EndpointError::Url);
        }
        if config.get_application_name().is_none() {
            config.application_name("animal-store");
        }
        // A peer that is gone for good is noticed where nobody waits for an answer, too; unless the URL has its own say.
        if !query.contains("keepalives") {
            config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE / 3).keepalives_retries(3);
        }
        let value = |name: &str| {
            let mut latest_first = ours.iter().rev().map(|option| name_and_value(option));
            latest_first.find(|(ours, _)| decoded(ours) == name).map(|(_, value)| decoded(value))
        };
        let roots = value("sslrootcert");
        let (mode, check) = encryption(value("sslmode").as_deref(), roots.as_deref())?;
        // Nobody listens in on a Unix socket, and PostgreSQL does not encrypt there.
        let local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        config.ssl_mode(if local { SslMode::Disable } else { mode });
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls::connector(check, self::roots(roots.as_deref())?).map_err(EndpointError::RootCertificates)?),
        };
        Ok(Self { config, tls, plain_will_do: mode == SslMode::Prefer })
    }

    /// The same, with these settings of the server (`name=value`) on each connection.
    pub(crate) fn with_settings(mut self, settings: &[String]) -> Self {
        let given = self.config.get_options().unwrap_or_default().to_owned();
        // The last one counts.
        let options = settings.iter().fold(given, |options, setting| format!("{options} -c {setting}"));
        self.config.options(options.trim());
        self
    }

    /// Opens a connection within this time. It is driven on the current runtime.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Opened, ConnectionError> {
        let connecting = async {
            match &self.tls {
                None => open(&self.config, NoTls).await,
                Some(tls) => match open(&self.config, tls.clone()).await {
                    Err(_) if self.plain_will_do => {
                        let mut plain = self.config.clone();
                        open(plain.ssl_mode(SslMode::Disable), NoTls).await
                    }
                    result => result,
                },
            }
        };
        timeout(patience, connecting).await.unwrap_or(Err(ConnectionError::Silent))
    }
}

async fn open<T>(config: &Config, tls: T) -> Result<Opened, ConnectionError>
where
    T: MakeTlsConnect<Socket, Stream: Send + 'static> + Send,
    T::TlsConnect: Send,
    <T::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls).await?;
    let encoding = connection.parameter("server_encoding").unwrap_or_default().to_owned();
    let driver = Driver(tokio::spawn(connection));
    if encoding == "UTF8" { Ok(Opened { client, driver }) } else { Err(ConnectionError::NotUtf8(encoding)) }
}

impl Driver {
    /// Waits for the connection to end by itself, and says why it did.
    pub(crate) async fn ended(&mut self) -> ConnectionError {
        match (&mut self.0).await {
            Ok(Err(error)) => error.into(),
            Ok(Ok(())) | Err(_) => ConnectionError::Closed,
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What libpq makes of these.
fn encryption(mode: Option<&str>, roots: Option<&str>) -> Result<(SslMode, Check), EndpointError> {
    match mode {
        Some("disable") => Ok((SslMode::Disable, Check::Nothing)),
        // The authorities of the system sign for everybody, so that the name has to count.
        None if roots == Some("system") => Ok((SslMode::Require, Check::AuthorityAndName)),
        None | Some("prefer") => Ok((SslMode::Prefer, Check::Nothing)),
        // Who names an authority wants it to be asked.
        Some("require") if roots.is_some() => Ok((SslMode::Require, Check::Authority)),
        Some("require") => Ok((SslMode::Require, Check::Nothing)),
        Some("verify-ca") => Ok((SslMode::Require, Check::Authority)),
        Some("verify-full") => Ok((SslMode::Require, Check::AuthorityAndName)),
        Some(_) => Err(EndpointError::SslMode),
    }
}

fn name_and_value(option: &str) -> (&str, &str) {
    option.split_once('=').unwrap_or((option, ""))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn roots(given: Option<&str>) -> Result<Roots, EndpointError> {
    match given {
        None | Some("system") => Ok(Roots::System),
        Some(path) => {
            let text = fs::read(path).map_err(|error| EndpointError::RootCertificates(error.to_string()))?;
            Ok(Roots::Pem(text))
        }
    }
}

/// Where it is and what it is called: the rest of the URL may be secret.
impl fmt::Display for PgEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            let comma = if index == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) if name.contains(':') => write!(formatter, "{comma}[{name}]:{port}")?,
                Host::Tcp(name) => write!(formatter, "{comma}{name}:{port}")?,
                Host::Unix(folder) => write!(formatter, "{comma}{}:{port}", folder.display())?,
            }
        }
        write!(formatter, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PgEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PgEndpoint({self})")
    }
}

#[cfg(test)]
mod tests;
