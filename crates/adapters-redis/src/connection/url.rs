//! The URL of a Redis server. The driver ignores options that it does not support: they are refused before.

use redis::{ConnectionInfo, IntoConnectionInfo, parse_redis_url};

/// Parses a URL. The messages of errors do not repeat any part of it: a password with a special character may be in
/// each.
pub(super) fn parse(text: &str) -> Result<ConnectionInfo, &'static str> {
    let url = parse_redis_url(text).ok_or("is not a URL of Redis (a / in a password is written %2F)")?;
    match url.fragment() {
        None => {}
        Some("insecure") => return Err("ends in #insecure: the server's certificate would not be verified"),
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
            return Err("has an unknown or repeated option (a ? or & in a password is written %3F or %26)");
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
        return Err("has a user without a password");
    }
    Ok(info)
}
