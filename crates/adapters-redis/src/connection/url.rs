//! The URL of a server, or of the Sentinels that know it. The messages of errors do not repeat any part of the URL: a
//! password with a special character may be in each.

use std::sync::Mutex;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, parse_redis_url};
use secrecy::SecretString;

use super::sentinels::Sentinels;

const NO_URL: &str = "is not a URL of Redis (a / in a password is written %2F)";
const WRONG_OPTION: &str =
    "has an unknown or repeated option (a ? or & in a password is written %3F or %26)";
const NO_PASSWORD: &str = "has a user without a password";

/// Parses a URL. With Sentinels, the server has the login and the address of the first Sentinel.
pub(super) fn parse_url(text: &str) -> Result<(ConnectionInfo, Option<Sentinels>), &'static str> {
    match text.split_once("+sentinel://") {
        Some((scheme @ ("redis" | "rediss"), rest)) => parse_sentinels(scheme, rest),
        _ => Ok((parse_server(text)?, None)),
    }
}

/// Parses `[user:password@]host[:port],…/service[/database][?sentinel_user=…&sentinel_password=…]`.
fn parse_sentinels(
    scheme: &str,
    rest: &str,
) -> Result<(ConnectionInfo, Option<Sentinels>), &'static str> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let addresses: Vec<_> = hosts
        .split(',')
        .map(|host| parse_address(scheme, host))
        .collect::<Result<_, _>>()?;
    let first = hosts.split(',').next().unwrap_or_default();
    let mut url = parse_redis_url(&format!("{scheme}://{login}{first}/{path}")).ok_or(NO_URL)?;
    let (mut user, mut password) = (None, None);
    for (name, value) in url.query_pairs() {
        let option = match &*name {
            "sentinel_user" => &mut user,
            "sentinel_password" => &mut password,
            _ => return Err(WRONG_OPTION),
        };
        if option.replace(value.into_owned()).is_some() {
            return Err(WRONG_OPTION);
        }
    }
    if user.is_some() && password.is_none() {
        return Err(NO_PASSWORD);
    }
    let path = url.path().trim_start_matches('/').to_owned();
    let (service, database) = path.split_once('/').unwrap_or((&path, ""));
    if service.is_empty()
        || !service
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    {
        return Err("has no valid name of a service behind the Sentinels");
    }
    url.set_path(database);
    url.set_query(None);
    let password = password.map(SecretString::from);
    let sentinels = Sentinels {
        addresses,
        service: service.to_owned(),
        user,
        password,
        certificates: None,
        connections: Mutex::default(),
    };
    Ok((parse_server(url.as_str())?, Some(sentinels)))
}

fn parse_address(scheme: &str, host: &str) -> Result<ConnectionAddr, &'static str> {
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, end)| !end.ends_with(']'));
    let port = if has_port { "" } else { ":26379" };
    Ok(parse_server(&format!("{scheme}://{host}{port}"))?
        .addr()
        .clone())
}

/// Parses the URL of a server. The driver ignores options that it does not support: they are refused here.
fn parse_server(text: &str) -> Result<ConnectionInfo, &'static str> {
    let url = parse_redis_url(text).ok_or(NO_URL)?;
    match url.fragment() {
        None => {}
        Some("insecure") => {
            return Err("ends in #insecure: the server's certificate would not be verified");
        }
        Some(_) => return Err("has a part after # (a # in a password is written %23)"),
    }
    let is_socket = url.scheme().ends_with("unix");
    if is_socket && (!url.username().is_empty() || url.password().is_some()) {
        return Err("has a user or a password that is not an option");
    }
    let mut names = Vec::new();
    for (name, value) in url.query_pairs() {
        let is_supported = match &*name {
            "db" | "user" | "pass" => is_socket,
            // The only protocol that the adapter uses.
            name => name == "protocol" && ["3", "resp3"].contains(&&*value),
        };
        if !is_supported || names.contains(&name) {
            return Err(WRONG_OPTION);
        }
        names.push(name);
    }
    let info = url.clone().into_connection_info();
    let info = info.map_err(|_| "has an invalid host, path, database, user or password")?;
    let login = info.redis_settings();
    if login.db() < 0 {
        return Err("has a negative database");
    }
    if login.username().is_some() && login.password().is_none() {
        return Err(NO_PASSWORD);
    }
    Ok(info)
}
