mod url;

use std::{fmt, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{
    CancelToken, Client, Config, NoTls, Socket,
    config::{Host, SslMode},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::url::{configuration, decoded, each_host, encryption, name_and_value, roots};
use crate::{error::ConnectionError, tls};

/// A PostgreSQL database and how to reach it.
#[derive(Clone)]
pub struct PgEndpoint {
    /// One for each host, in the order in which they are tried.
    configs: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    /// Whether plain text will do where encryption cannot be had.
    plain_will_do: bool,
}

/// Why there can be no such endpoint. Nothing secret is part of it.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum PgEndpointError {
    /// The URL is none of a PostgreSQL database.
    #[error(
        "must be postgres://[user[:password]@]host[:port]/database[?option=value&…], or have the folder of a Unix \
         socket as its option host; any other @ is written %40"
    )]
    Url,
    /// The URL has an option that is not known here, or a value of one.
    #[error("has an option, or a value of one, that is not supported; docs/operations.md names those that are")]
    Option,
    /// The mode of encryption is none of libpq's.
    #[error("must have an sslmode of disable, prefer, require, verify-ca or verify-full")]
    SslMode,
    /// An authority that signs for everybody is asked for a certificate without the name that it is for.
    #[error("must have sslmode=verify-full, or an sslrootcert that is a file")]
    WeakWithSystem,
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
    /// See [`PgEndpointError`].
    pub fn new(url: &SecretString) -> Result<Self, PgEndpointError> {
        let url = url.expose_secret();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(PgEndpointError::Url);
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        // Another @ may be a part of the password, which the rest is then, too; hosts and the database are shown.
        if url.matches('@').count() > 1 || query.contains('@') {
            return Err(PgEndpointError::Url);
        }
        let is_ours = |option: &&str| ["sslmode", "sslrootcert"].contains(&&*decoded(name_and_value(option).0));
        let (ours, theirs): (Vec<_>, Vec<_>) = query.split('&').partition(is_ours);
        base.parse::<Config>().map_err(|_| PgEndpointError::Url)?;
        let mut configs = Vec::new();
        for base in each_host(base) {
            configs.push(configuration(&base, &theirs)?);
        }
        let value = |name: &str| {
            let mut latest_first = ours.iter().rev().map(|option| name_and_value(option));
            latest_first.find(|(ours, _)| decoded(ours) == name).map(|(_, value)| decoded(value))
        };
        let authorities = value("sslrootcert");
        let (mode, check) = encryption(value("sslmode").as_deref(), authorities.as_deref())?;
        // Nobody listens in on a Unix socket, and PostgreSQL does not encrypt there.
        let local = |config: &Config| config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        for config in &mut configs {
            config.ssl_mode(if local(config) { SslMode::Disable } else { mode });
        }
        let tls = match mode {
            SslMode::Disable => None,
            _ if configs.iter().all(local) => None,
            _ => {
                Some(tls::connector(check, roots(authorities.as_deref())?).map_err(PgEndpointError::RootCertificates)?)
            }
        };
        Ok(Self { configs, tls, plain_will_do: mode == SslMode::Prefer })
    }

    /// Opens a connection within this time, of which each host has its share. It is driven on the current runtime.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Opened, ConnectionError> {
        let share = patience / u32::try_from(self.configs.len()).unwrap_or(u32::MAX);
        let mut last = ConnectionError::Silent;
        for config in &self.configs {
            match timeout(share, self.connect_to(config)).await.unwrap_or(Err(ConnectionError::Silent)) {
                Ok(opened) => return Ok(opened),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn connect_to(&self, config: &Config) -> Result<Opened, ConnectionError> {
        let Some(tls) = self.tls.as_ref().filter(|_| config.get_ssl_mode() != SslMode::Disable) else {
            return open(config, NoTls).await;
        };
        match open(config, tls.clone()).await {
            Err(error) if self.plain_will_do && error.may_be_about_encryption() => {
                let mut plain = config.clone();
                // What went wrong first is what has to be mended.
                open(plain.ssl_mode(SslMode::Disable), NoTls).await.map_err(|_| error)
            }
            result => result,
        }
    }

    /// Ends what a connection that was given up is still doing in the server, if that is to be had within this time.
    pub(crate) async fn cancel(&self, token: CancelToken, patience: Duration) {
        let cancelling = async {
            match &self.tls {
                None => token.cancel_query(NoTls).await,
                Some(tls) => token.cancel_query(tls.clone()).await,
            }
        };
        // Where it is not to be had, there is nobody left to tell.
        let _ = timeout(patience, cancelling).await;
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
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_finished()
    }

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

/// Where it is and what it is called: the rest of the URL may be secret.
impl fmt::Display for PgEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_config = |config: &Config| {
            let ports = config.get_ports().to_vec();
            let port = move |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            config.get_hosts().to_vec().into_iter().enumerate().map(move |(index, host)| (host, port(index)))
        };
        for (index, (host, port)) in self.configs.iter().flat_map(of_config).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) if name.contains(':') => write!(formatter, "{comma}[{name}]:{port}")?,
                Host::Tcp(name) => write!(formatter, "{comma}{name}:{port}")?,
                Host::Unix(folder) => write!(formatter, "{comma}{}:{port}", folder.display())?,
            }
        }
        write!(formatter, "/{}", self.configs[0].get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PgEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PgEndpoint({self})")
    }
}

#[cfg(test)]
mod tests;
