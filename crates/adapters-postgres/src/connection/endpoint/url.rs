//! Parses the URL of a database, with libpq's meaning of its options.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::connection::tls::{Authorities, CertificateCheck};

/// Idle time of a connection after which the system probes whether its peer is alive.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The URL is invalid. The messages contain no secret.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum PgEndpointError {
    /// It is not the URL of a PostgreSQL database.
    #[error(
        "must be postgres://[user[:password]@]host[:port]/database[?option=value&…], or have the folder of a Unix \
         socket as its option host; any other @ is written %40"
    )]
    Url,
    /// An option, or its value, is not supported.
    #[error("has an option, or a value of one, that is not supported; docs/operations.md lists the supported ones")]
    Option,
    /// `sslmode` is not one of libpq's.
    #[error("must have an sslmode of disable, prefer, require, verify-ca or verify-full")]
    SslMode,
    /// A certificate of a public authority proves nothing unless its name is checked.
    #[error("must have sslmode=verify-full, or an sslrootcert that is a file")]
    WeakWithSystem,
    /// `sslrootcert` does not contain the certificate of an authority.
    #[error("has an sslrootcert that cannot be used: {0}")]
    RootCertificates(String),
}

pub(super) struct EndpointUrl {
    pub(super) configs: Vec<Config>,
    /// `None` if no connection is encrypted.
    pub(super) certificate_check: Option<CertificateCheck>,
}

/// An option of the URL, decoded and in its original form.
struct UrlOption<'a> {
    name: String,
    value: String,
    text: &'a str,
}

impl EndpointUrl {
    pub(super) fn parse(url: &str) -> Result<Self, PgEndpointError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(PgEndpointError::Url);
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        // A second @ may be part of the password, and so may the text after it, which would be shown as hosts and
        // database.
        if url.matches('@').count() > 1 || query.contains('@') {
            return Err(PgEndpointError::Url);
        }
        base.parse::<Config>().map_err(|_| PgEndpointError::Url)?;
        let is_tls = |option: &UrlOption<'_>| ["sslmode", "sslrootcert"].contains(&&*option.name);
        let (tls_options, options): (Vec<_>, Vec<_>) = query.split('&').map(UrlOption::from_text).partition(is_tls);
        let mut configs = split_hosts(base).iter().map(|base| config(base, &options)).collect::<Result<Vec<_>, _>>()?;

        let last = |name| tls_options.iter().rfind(|option| option.name == name).map(|option| &*option.value);
        let (ssl_mode, certificate_check) = encryption(last("sslmode"), last("sslrootcert"))?;
        let mut encrypts = false;
        for config in &mut configs {
            // As in libpq, a Unix socket is never encrypted.
            let local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
            config.ssl_mode(if local { SslMode::Disable } else { ssl_mode });
            encrypts |= config.get_ssl_mode() != SslMode::Disable;
        }
        Ok(Self { configs, certificate_check: encrypts.then_some(certificate_check) })
    }
}

impl<'a> UrlOption<'a> {
    fn from_text(text: &'a str) -> Self {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Self { name: decode(name), value: decode(value), text }
    }
}

/// Returns the URL before its options, once per host.
fn split_hosts(base: &str) -> Vec<String> {
    let (scheme, rest) = base.split_once("://").unwrap_or(("postgres", base));
    let (login, rest) = rest.rsplit_once('@').map_or(("", rest), |(login, rest)| (login, rest));
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let at = if login.is_empty() { "" } else { "@" };
    hosts.split(',').map(|host| format!("{scheme}://{login}{at}{host}/{database}")).collect()
}

fn config(base: &str, options: &[UrlOption<'_>]) -> Result<Config, PgEndpointError> {
    let query = options.iter().map(|option| option.text).collect::<Vec<_>>().join("&");
    let mut config: Config = format!("{base}?{query}").parse().map_err(|_| PgEndpointError::Option)?;
    let is_named = |host: &Host| !matches!(host, Host::Tcp(name) if name.is_empty());
    if config.get_dbname().is_none() || config.get_hosts().is_empty() || !config.get_hosts().iter().all(is_named) {
        return Err(PgEndpointError::Url);
    }
    if config.get_application_name().is_none() {
        config.application_name("animal-store");
    }
    // A dead peer is noticed even if no response is pending, unless the URL has its own settings.
    if !options.iter().any(|option| option.name.starts_with("keepalives")) {
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE / 3).keepalives_retries(3);
    }
    Ok(config)
}

fn encryption(
    mode: Option<&str>,
    root_certificates: Option<&str>,
) -> Result<(SslMode, CertificateCheck), PgEndpointError> {
    let mode = mode.unwrap_or(if root_certificates == Some("system") { "verify-full" } else { "prefer" });
    let ssl_mode = match mode {
        "disable" => SslMode::Disable,
        "prefer" => SslMode::Prefer,
        "require" | "verify-ca" | "verify-full" => SslMode::Require,
        _ => return Err(PgEndpointError::SslMode),
    };
    let authorities = match (mode, root_certificates) {
        ("verify-full", None | Some("system")) => Authorities::System,
        // The authorities of the system sign for every name.
        (_, Some("system")) | ("verify-ca", None) => return Err(PgEndpointError::WeakWithSystem),
        (_, Some(file)) => Authorities::File(file.into()),
        (_, None) => Authorities::Any,
    };
    Ok((ssl_mode, CertificateCheck { authorities, name: mode == "verify-full" }))
}
