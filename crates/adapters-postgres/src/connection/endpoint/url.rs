//! Parses the URL of a database, with libpq's meaning of its options.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::connection::tls::CertificateCheck;

/// Idle time of a connection after which the system probes whether its peer is alive.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A part of the URL is invalid. The message contains no secret: a value is never repeated, because a separator that is
/// not percent-encoded makes a part of the password the value of another part.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PgEndpointError(pub(super) String);

impl From<&str> for PgEndpointError {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

/// Returns the configuration of each host.
pub(super) fn parse(url: &str) -> Result<(Vec<Config>, CertificateCheck), PgEndpointError> {
    let rest = ["postgres://", "postgresql://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or("must begin with postgres:// or postgresql://")?;
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Otherwise the text after the first @ would be shown as hosts and database.
    if rest.matches('@').count() > 1 || query.contains('@') {
        Err(
            "must have one @ at most, before its host; within a user, password or option, @ is written %40 and ? is \
             %3F",
        )?;
    }
    let mut ssl_mode = None;
    let mut root_certificates = None;
    let mut options = String::new();
    let mut has_password = false;
    let mut has_keepalives = false;
    for (number, option) in (1..).zip(query.split('&').filter(|option| !option.is_empty())) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let [name, value] = [name, value].map(|text| percent_decode_str(text).decode_utf8_lossy());
        match &*name {
            "sslmode" => ssl_mode = Some(value),
            "sslrootcert" => root_certificates = Some(value),
            _ if format!("postgres://?{option}").parse::<Config>().is_ok() => {
                has_password |= name == "password";
                has_keepalives |= name.starts_with("keepalives");
                options = options + option + "&";
            }
            _ => {
                // After a password, the name may be part of it, behind an & that is not percent-encoded.
                let shown = if has_password {
                    format!("number {number}")
                } else {
                    format!("{name:?}")
                };
                return Err(PgEndpointError(format!(
                    "has the option {shown}, which is unknown or has an invalid value; \
                     docs/operations/postgresql.md lists the supported ones"
                )));
            }
        }
    }
    let (ssl_mode, mut certificate_check) =
        encryption(ssl_mode.as_deref(), root_certificates.as_deref())?;
    let (login, rest) = base.split_at(base.rfind('@').map_or(0, |at| at + 1));
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let mut configs = Vec::new();
    for host in hosts.split(',') {
        let mut config = config(&format!("postgres://{login}{host}/{database}?{options}")).ok_or(
            "must have the form postgres://[user[:password]@]host[:port][,...]/database, with ports from 1 to 65535 \
             and percent-encoded UTF-8; the folder of a Unix socket is given as its option host",
        )?;
        // As in libpq, a Unix socket is never encrypted.
        let is_local = config
            .get_hosts()
            .iter()
            .all(|host| matches!(host, Host::Unix(_)));
        config.ssl_mode(if is_local { SslMode::Disable } else { ssl_mode });
        // A dead peer is noticed even if no response is pending, unless the URL has its own settings.
        if !has_keepalives {
            config
                .keepalives_idle(KEEPALIVE)
                .keepalives_interval(KEEPALIVE / 3)
                .keepalives_retries(3);
        }
        configs.push(config);
    }
    // A file that has no effect is not read.
    let is_encrypted = configs
        .iter()
        .any(|config| config.get_ssl_mode() != SslMode::Disable);
    certificate_check.roots.take_if(|_| !is_encrypted);
    Ok((configs, certificate_check))
}

/// Parses a URL with one host, or none beside those of its options.
fn config(url: &str) -> Option<Config> {
    let config: Config = url.parse().ok()?;
    let is_named = |host: &Host| !matches!(host, Host::Tcp(name) if name.is_empty());
    let hosts = config.get_hosts();
    let ports = config.get_ports();
    let has_hosts = !hosts.is_empty() && hosts.iter().all(is_named);
    let has_ports = !ports.contains(&0) && (ports.len() <= 1 || ports.len() == hosts.len());
    (has_hosts && has_ports && config.get_dbname().is_some()).then_some(config)
}

fn encryption(
    mode: Option<&str>,
    roots: Option<&str>,
) -> Result<(SslMode, CertificateCheck), PgEndpointError> {
    let mode = mode.unwrap_or(if roots == Some("system") {
        "verify-full"
    } else {
        "prefer"
    });
    let ssl_mode = match mode {
        "disable" => SslMode::Disable,
        "prefer" => SslMode::Prefer,
        "require" | "verify-ca" | "verify-full" => SslMode::Require,
        _ => Err("must have an sslmode of disable, prefer, require, verify-ca or verify-full")?,
    };
    let checks_name = mode == "verify-full";
    let roots = roots.or((checks_name || mode == "verify-ca").then_some("system"));
    // The authorities of the system sign for every name.
    if roots == Some("system") && !checks_name {
        Err("must have sslmode=verify-full, or an sslrootcert that is a file")?;
    }
    Ok((
        ssl_mode,
        CertificateCheck {
            roots: roots.map(str::to_owned),
            checks_name,
        },
    ))
}
