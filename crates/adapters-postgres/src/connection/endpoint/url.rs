//! Parses the URL of a database, with libpq's meaning of its options.

use std::{borrow::Cow, time::Duration};

use animal_store_adapter_kit::this_user;
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

/// What a URL says.
pub(super) struct ParsedUrl {
    /// The configuration of each host.
    pub(super) configs: Vec<Config>,
    pub(super) certificate_check: CertificateCheck,
}

/// The options of a URL.
#[derive(Default)]
struct Options<'a> {
    ssl_mode: Option<Cow<'a, str>>,
    root_certificates: Option<Cow<'a, str>>,
    /// The options of the driver, as the URL has them.
    of_driver: String,
    has_keepalives: bool,
}

/// The encryption of the connections that are not local.
struct Encryption {
    ssl_mode: SslMode,
    certificate_check: CertificateCheck,
}

pub(super) fn parse(url: &str) -> Result<ParsedUrl, PgEndpointError> {
    let rest = url
        .strip_prefix("postgres://")
        .or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or("must begin with postgres:// or postgresql://")?;
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Otherwise the text after the first @ would be shown as hosts and database.
    if rest.matches('@').count() > 1 || query.contains('@') {
        Err(
            "must have one @ at most, before its host; within a user, password or option, @ is written %40 and ? is \
             %3F",
        )?;
    }
    let options = Options::parse(query)?;
    let encryption = Encryption::of(&options)?;
    let login_end = base.rfind('@').map_or(0, |at| at + 1);
    let (login, rest) = base.split_at(login_end);
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let mut configs = Vec::new();
    let mut is_encrypted = false;
    for host in hosts.split(',') {
        let of_driver = &options.of_driver;
        let url = format!("postgres://{login}{host}/{database}?{of_driver}");
        let mut config = parse_config(&url).ok_or(
            "must have the form postgres://[user[:password]@]host[:port][,...]/database, with ports from 1 to 65535 \
             and percent-encoded UTF-8; the folder of a Unix socket is given as its option host",
        )?;
        // The driver has no name for a user whom the system does not know. This is its number then.
        if config.get_user().is_none() {
            config.user(this_user());
        }
        // As in libpq, a Unix socket is never encrypted.
        let mut hosts = config.get_hosts().iter();
        let is_socket = hosts.all(|host| matches!(host, Host::Unix(_)));
        let ssl_mode = if is_socket {
            SslMode::Disable
        } else {
            encryption.ssl_mode
        };
        is_encrypted |= ssl_mode != SslMode::Disable;
        config.ssl_mode(ssl_mode);
        // A dead peer is noticed even if no response is pending, unless the URL has its own settings.
        if !options.has_keepalives {
            config.keepalives_idle(KEEPALIVE);
            config.keepalives_interval(KEEPALIVE / 3);
            config.keepalives_retries(3);
        }
        configs.push(config);
    }
    let mut certificate_check = encryption.certificate_check;
    if !is_encrypted {
        // A file that has no effect is not read.
        certificate_check.roots = None;
    }
    Ok(ParsedUrl {
        configs,
        certificate_check,
    })
}

impl<'a> Options<'a> {
    fn parse(query: &'a str) -> Result<Self, PgEndpointError> {
        let mut options = Self::default();
        let mut has_password = false;
        let given = query.split('&').filter(|option| !option.is_empty());
        for (index, option) in given.enumerate() {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let name = percent_decode_str(name).decode_utf8_lossy();
            let value = percent_decode_str(value).decode_utf8_lossy();
            match &*name {
                "sslmode" => options.ssl_mode = Some(value),
                "sslrootcert" => options.root_certificates = Some(value),
                _ if format!("postgres://?{option}").parse::<Config>().is_ok() => {
                    has_password |= name == "password";
                    options.has_keepalives |= name.starts_with("keepalives");
                    options.of_driver.push_str(option);
                    options.of_driver.push('&');
                }
                _ => {
                    // After a password, the name may be part of it, behind an & that is not percent-encoded.
                    let shown = if has_password {
                        format!("number {}", index + 1)
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
        Ok(options)
    }
}

/// Parses a URL with one host, or none beside those of its options.
fn parse_config(url: &str) -> Option<Config> {
    let config: Config = url.parse().ok()?;
    let hosts = config.get_hosts();
    let ports = config.get_ports();
    let has_unnamed = hosts
        .iter()
        .any(|host| matches!(host, Host::Tcp(name) if name.is_empty()));
    let has_ports = ports.len() <= 1 || ports.len() == hosts.len();
    if hosts.is_empty() || has_unnamed || !has_ports || ports.contains(&0) {
        return None;
    }
    config.get_dbname()?;
    Some(config)
}

impl Encryption {
    fn of(options: &Options<'_>) -> Result<Self, PgEndpointError> {
        let roots = options.root_certificates.as_deref();
        let default = match roots {
            Some("system") => "verify-full",
            _ => "prefer",
        };
        let mode = options.ssl_mode.as_deref().unwrap_or(default);
        let ssl_mode = match mode {
            "disable" => SslMode::Disable,
            "prefer" => SslMode::Prefer,
            "require" | "verify-ca" | "verify-full" => SslMode::Require,
            _ => Err("must have an sslmode of disable, prefer, require, verify-ca or verify-full")?,
        };
        let roots = match mode {
            "verify-ca" | "verify-full" => Some(roots.unwrap_or("system")),
            _ => roots,
        };
        let checks_name = mode == "verify-full";
        // The authorities of the system sign for every name.
        if roots == Some("system") && !checks_name {
            Err("must have sslmode=verify-full, or an sslrootcert that is a file")?;
        }
        Ok(Self {
            ssl_mode,
            certificate_check: CertificateCheck {
                roots: roots.map(str::to_owned),
                checks_name,
            },
        })
    }
}
