//! The parts of a URL, and what libpq makes of its options.

use std::{fs, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::PgEndpointError;
use crate::tls::{Check, Roots};

/// How long a connection may be silent before the system asks whether its peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The URL before its options, once for each of its hosts.
pub(super) fn each_host(base: &str) -> Vec<String> {
    let (scheme, rest) = base.split_once("://").unwrap_or(("postgres", base));
    let (login, rest) = rest.rsplit_once('@').map_or(("", rest), |(login, rest)| (login, rest));
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let at = if login.is_empty() { "" } else { "@" };
    hosts.split(',').map(|host| format!("{scheme}://{login}{at}{host}/{database}")).collect()
}

pub(super) fn configuration(base: &str, options: &[&str]) -> Result<Config, PgEndpointError> {
    let mut config: Config = format!("{base}?{}", options.join("&")).parse().map_err(|_| PgEndpointError::Option)?;
    let named = |host: &Host| !matches!(host, Host::Tcp(name) if name.is_empty());
    if config.get_dbname().is_none() || config.get_hosts().is_empty() || !config.get_hosts().iter().all(named) {
        return Err(PgEndpointError::Url);
    }
    if config.get_application_name().is_none() {
        config.application_name("animal-store");
    }
    // A peer that is gone for good is noticed where nobody waits for an answer, too; unless the URL has its own say.
    if !options.iter().any(|option| decoded(name_and_value(option).0).starts_with("keepalives")) {
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE / 3).keepalives_retries(3);
    }
    Ok(config)
}

/// What libpq makes of these.
pub(super) fn encryption(mode: Option<&str>, roots: Option<&str>) -> Result<(SslMode, Check), PgEndpointError> {
    let of_system = roots == Some("system");
    match mode {
        // The authorities of the system sign for everybody: without the name, a signature says nothing.
        Some("disable" | "prefer" | "require" | "verify-ca") if of_system => Err(PgEndpointError::WeakWithSystem),
        Some("verify-ca") if roots.is_none() => Err(PgEndpointError::WeakWithSystem),
        Some("verify-full") => Ok((SslMode::Require, Check::AuthorityAndName)),
        None if of_system => Ok((SslMode::Require, Check::AuthorityAndName)),
        Some("disable") => Ok((SslMode::Disable, Check::Nothing)),
        // Who names an authority wants it to be asked.
        None | Some("prefer") if roots.is_some() => Ok((SslMode::Prefer, Check::Authority)),
        None | Some("prefer") => Ok((SslMode::Prefer, Check::Nothing)),
        Some("require" | "verify-ca") if roots.is_some() => Ok((SslMode::Require, Check::Authority)),
        Some("require") => Ok((SslMode::Require, Check::Nothing)),
        Some(_) => Err(PgEndpointError::SslMode),
    }
}

pub(super) fn name_and_value(option: &str) -> (&str, &str) {
    option.split_once('=').unwrap_or((option, ""))
}

pub(super) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

pub(super) fn roots(given: Option<&str>) -> Result<Roots, PgEndpointError> {
    match given {
        None | Some("system") => Ok(Roots::System),
        Some(path) => {
            let text = fs::read(path).map_err(|error| PgEndpointError::RootCertificates(error.to_string()))?;
            Ok(Roots::Pem(text))
        }
    }
}
