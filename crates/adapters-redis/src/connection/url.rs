//! The URL of a Redis server. The driver ignores options that it does not support, and does not report which part of a
//! URL is wrong: the parts are checked before.

use redis::{ConnectionInfo, IntoConnectionInfo};
use url::{ParseError, Url};

/// Parses a URL. The messages of errors do not repeat any part of it: a password with a special character may be in
/// each.
pub(super) fn parse(text: &str) -> Result<ConnectionInfo, &'static str> {
    let url = Url::parse(text).map_err(malformed)?;
    match url.scheme() {
        "redis" | "rediss" | "valkey" | "valkeys" => check_tcp(&url)?,
        "unix" | "redis+unix" | "valkey+unix" => check_socket(&url)?,
        _ => return Err("does not begin with redis://, rediss:// or unix://"),
    }
    match url.fragment() {
        None => {}
        Some("insecure") => return Err("ends in #insecure: the server's certificate would not be verified"),
        Some(_) => return Err("has a part after # (a # in a password is written %23)"),
    }
    let info = url.into_connection_info().map_err(|_| "has a user or a password that is not UTF-8")?;
    let login = info.redis_settings();
    if login.username().is_some() && login.password().is_none() {
        return Err("has a user without a password");
    }
    Ok(info)
}

const fn malformed(error: ParseError) -> &'static str {
    match error {
        ParseError::RelativeUrlWithoutBase => "does not begin with redis://, rediss:// or unix://",
        ParseError::EmptyHost => "has no host",
        ParseError::InvalidPort => "has a port that is not a number up to 65535 (a / in a password is written %2F)",
        _ => "has an invalid host",
    }
}

fn check_tcp(url: &Url) -> Result<(), &'static str> {
    match url.host_str() {
        None | Some("") => return Err("has no host"),
        Some("0.0.0.0" | "[::]") => return Err("has a host that stands for every address"),
        Some(_) => {}
    }
    // The only protocol that the adapter uses.
    if url.query_pairs().any(|(name, value)| name != "protocol" || !["3", "resp3"].contains(&&*value)) {
        return Err("has an option that is not supported (a ? in a password is written %3F)");
    }
    match url.path().trim_matches('/') {
        "" => Ok(()),
        database => check_database(database),
    }
}

fn check_socket(url: &Url) -> Result<(), &'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user or a password that is not an option");
    }
    if url.path().trim_matches('/').is_empty() || url.to_file_path().is_err() {
        return Err("has no absolute path");
    }
    let mut names = Vec::new();
    for (name, value) in url.query_pairs() {
        match &*name {
            "db" => check_database(&value)?,
            "user" | "pass" => {}
            "protocol" if ["3", "resp3"].contains(&&*value) => {}
            _ => return Err("has an option that is not supported (an & in a password is written %26)"),
        }
        if names.contains(&name) {
            return Err("has an option twice");
        }
        names.push(name);
    }
    Ok(())
}

fn check_database(text: &str) -> Result<(), &'static str> {
    text.parse::<u32>().map(drop).map_err(|_| "has a database that is not a number from 0")
}
