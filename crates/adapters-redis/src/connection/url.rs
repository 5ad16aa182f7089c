//! The URL of a server, or of the Sentinels that know it. The messages of errors do not repeat any part of the URL: a
//! password with a special character may be in each.

use std::borrow::Cow;

use redis::{
    ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, parse_redis_url,
};

const NO_URL: &str = "is not a URL of Redis (a / in a password is written %2F)";
const WRONG_OPTION: &str =
    "has an unknown or repeated option (a ? or & in a password is written %3F or %26)";

/// What a URL says.
pub(super) struct ParsedUrl {
    /// The server. With Sentinels, its address is that of the first one.
    pub(super) server: ConnectionInfo,
    pub(super) service: Option<Service>,
}

/// A server that Sentinels know.
pub(super) struct Service {
    pub(super) name: String,
    pub(super) sentinels: Vec<ConnectionInfo>,
}

pub(super) fn parse_url(text: &str) -> Result<ParsedUrl, &'static str> {
    match text.split_once("+sentinel://") {
        Some((scheme @ ("redis" | "rediss"), rest)) => parse_service(scheme, rest),
        _ => Ok(ParsedUrl {
            server: parse_server(text)?,
            service: None,
        }),
    }
}

/// Parses `[user:password@]host[:port],…/service[/database][?sentinel_user=…&sentinel_password=…]`.
fn parse_service(scheme: &str, rest: &str) -> Result<ParsedUrl, &'static str> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let hosts_start = authority.rfind('@').map_or(0, |at| at + 1);
    let (login, hosts) = authority.split_at(hosts_start);
    // The driver parses a URL with one host.
    let first = hosts.split(',').next().unwrap_or_default();
    let mut url = parse_redis_url(&format!("{scheme}://{login}{first}/{path}")).ok_or(NO_URL)?;
    let sentinel_login = parse_sentinel_login(url.query_pairs())?;
    let mut sentinels = Vec::new();
    for host in hosts.split(',') {
        let sentinel = parse_sentinel(scheme, host)?;
        sentinels.push(sentinel.set_redis_settings(sentinel_login.clone()));
    }
    let path = url.path().trim_start_matches('/').to_owned();
    let (name, database) = path.split_once('/').unwrap_or((&path, ""));
    if !is_service_name(name) {
        return Err("has no valid name of a service behind the Sentinels");
    }
    url.set_path(database);
    url.set_query(None);
    Ok(ParsedUrl {
        server: parse_server(url.as_str())?,
        service: Some(Service {
            name: name.to_owned(),
            sentinels,
        }),
    })
}

fn parse_sentinel_login<'a>(
    options: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
) -> Result<RedisConnectionInfo, &'static str> {
    // With RESP3, the reason for a refused login is that of the server.
    let mut login = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3);
    for (name, value) in options {
        login = match &*name {
            "sentinel_user" if login.username().is_none() => login.set_username(value),
            "sentinel_password" if login.password().is_none() => login.set_password(value),
            _ => return Err(WRONG_OPTION),
        };
    }
    check_login(&login)?;
    Ok(login)
}

fn is_service_name(name: &str) -> bool {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
    !name.is_empty() && name.chars().all(is_allowed)
}

fn parse_sentinel(scheme: &str, host: &str) -> Result<ConnectionInfo, &'static str> {
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, end)| !end.ends_with(']'));
    let port = if has_port { "" } else { ":26379" };
    parse_server(&format!("{scheme}://{host}{port}"))
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
    check_login(login)?;
    Ok(info)
}

fn check_login(login: &RedisConnectionInfo) -> Result<(), &'static str> {
    if login.username().is_some() && login.password().is_none() {
        return Err("has a user without a password");
    }
    Ok(())
}
