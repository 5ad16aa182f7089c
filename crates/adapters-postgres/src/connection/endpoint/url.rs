//! Parses the URL of a database, with libpq's meaning of its options.

use std::{error::Error, time::Duration};

use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::connection::tls::{Authorities, CertificateCheck};

/// Idle time of a connection after which the system probes whether its peer is alive.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A part of the URL is invalid. The messages contain no secret: a value is never repeated, because a separator that is
/// not percent-encoded makes a part of the password the value of another part.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum PgEndpointError {
    /// It is not the URL of a PostgreSQL database.
    #[error("must begin with postgres:// or postgresql://")]
    Scheme,
    /// A second `@`, or one after the first `?`, may be part of the password.
    #[error(
        "must have one @ at most, before its host; within a user, password or option, @ is written %40 and ? is %3F"
    )]
    AtSign,
    /// The user, a host, a port or the database is missing or invalid.
    #[error(
        "must have the form postgres://[user[:password]@]host[:port][,...]/database, with ports from 1 to 65535 and \
         percent-encoded UTF-8; the folder of a Unix socket is given as its option host"
    )]
    Form,
    /// The option of this name or number is not supported.
    #[error("has the unknown option {0}; docs/operations/postgresql.md lists the supported ones")]
    UnknownOption(String),
    /// The option of this name or number has an invalid value.
    #[error("has an invalid value of its option {0}")]
    OptionValue(String),
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

/// An option of the URL, decoded and in its original form.
struct UrlOption<'a> {
    name: String,
    value: String,
    text: &'a str,
}

/// Returns the configuration of each host. The check is `None` if no connection is encrypted.
pub(super) fn parse(url: &str) -> Result<(Vec<Config>, Option<CertificateCheck>), PgEndpointError> {
    let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or(PgEndpointError::Scheme)?;
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Otherwise the text after the first @ would be shown as hosts and database.
    if rest.matches('@').count() > 1 || query.contains('@') {
        return Err(PgEndpointError::AtSign);
    }
    let options: Vec<_> = query.split('&').filter(|text| !text.is_empty()).map(UrlOption::from_text).collect();
    check_options(&options)?;
    let (tls_options, options): (Vec<_>, Vec<_>) = options.into_iter().partition(UrlOption::is_about_tls);
    let mut configs = split_hosts(base).iter().map(|base| config(base, &options)).collect::<Result<Vec<_>, _>>()?;

    let last = |name| tls_options.iter().rfind(|option| option.name == name).map(|option| &*option.value);
    let (ssl_mode, certificate_check) = encryption(last("sslmode"), last("sslrootcert"))?;
    for config in &mut configs {
        // As in libpq, a Unix socket is never encrypted.
        let local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        config.ssl_mode(if local { SslMode::Disable } else { ssl_mode });
    }
    let encrypts = configs.iter().any(|config| config.get_ssl_mode() != SslMode::Disable);
    Ok((configs, encrypts.then_some(certificate_check)))
}

impl<'a> UrlOption<'a> {
    fn from_text(text: &'a str) -> Self {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Self { name: decode(name), value: decode(value), text }
    }

    fn is_about_tls(&self) -> bool {
        ["sslmode", "sslrootcert"].contains(&&*self.name)
    }
}

/// Returns the URL before its options, once per host.
fn split_hosts(base: &str) -> Vec<String> {
    let (login, rest) = base.split_at(base.rfind('@').map_or(0, |at| at + 1));
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    hosts.split(',').map(|host| format!("postgres://{login}{host}/{database}")).collect()
}

/// Checks each option alone, because the error of a whole URL does not name the option.
fn check_options(options: &[UrlOption<'_>]) -> Result<(), PgEndpointError> {
    for (index, option) in options.iter().enumerate().filter(|(_, option)| !option.is_about_tls()) {
        let Err(error) = format!("postgres://?{}", option.text).parse::<Config>() else { continue };
        // After a password, the name may be part of it, behind an & that is not percent-encoded.
        let may_be_secret = options[..index].iter().any(|option| option.name == "password");
        let shown_name = if may_be_secret { format!("number {}", index + 1) } else { format!("{:?}", option.name) };
        let is_unknown = error.source().is_some_and(|error| error.to_string().starts_with("unknown option"));
        return Err(if is_unknown {
            PgEndpointError::UnknownOption(shown_name)
        } else {
            PgEndpointError::OptionValue(shown_name)
        });
    }
    Ok(())
}

fn config(base: &str, options: &[UrlOption<'_>]) -> Result<Config, PgEndpointError> {
    let query = options.iter().map(|option| option.text).collect::<Vec<_>>().join("&");
    // Each option was checked before.
    let mut config: Config = format!("{base}?{query}").parse().map_err(|_| PgEndpointError::Form)?;
    let is_named = |host: &Host| !matches!(host, Host::Tcp(name) if name.is_empty());
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    let has_hosts = !hosts.is_empty() && hosts.iter().all(is_named);
    let has_ports = !ports.contains(&0) && (ports.len() <= 1 || ports.len() == hosts.len());
    if !has_hosts || !has_ports || config.get_dbname().is_none() {
        return Err(PgEndpointError::Form);
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
