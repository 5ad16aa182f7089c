//! Parsers of values.

use std::{
    fmt::Display, net::SocketAddr, ops::RangeInclusive, path::PathBuf, str::FromStr, time::Duration,
};

/// A value, or what is expected in its place, as in `must be …`.
pub type Parsed<T> = Result<T, String>;

/// The start of a private key in PEM.
const PRIVATE_KEY: &str = "-----BEGIN";

/// Parses a text, and requires of the value what its type does not.
pub fn valid<T: FromStr>(
    expected: impl Into<String>,
    is_valid: impl Fn(&T) -> bool,
) -> impl Fn(&str) -> Parsed<T> {
    let expected = expected.into();
    move |text| match text.parse() {
        Ok(value) if is_valid(&value) => Ok(value),
        _ => Err(expected.clone()),
    }
}

/// Parses an IP address with a port.
///
/// # Errors
/// What is expected.
pub fn address(text: &str) -> Parsed<SocketAddr> {
    let expected = "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080";
    let address = valid(expected, |_| true);
    address(text)
}

/// Returns whether an error must not show a text that is set in a wrong place: a URL can contain a password, also
/// without its scheme, and a text of several lines a private key.
pub(crate) fn can_be_secret(text: &str) -> bool {
    text.contains("//") || text.contains(['@', '?', '\n']) || text.contains(PRIVATE_KEY)
}

/// Parses a path.
///
/// # Errors
/// What is expected.
pub fn path(text: &str) -> Parsed<PathBuf> {
    // A path can have other marks of a secret.
    let is_secret = text.contains("://") || text.starts_with(PRIVATE_KEY);
    if text.is_empty() || is_secret {
        Err("the path of a file".to_owned())
    } else {
        Ok(text.into())
    }
}

/// Parses a whole number in a range.
pub fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Parsed<T> {
    let min = range.start();
    let max = range.end();
    let expected = format!("a whole number from {min} to {max}");
    valid(expected, move |number| range.contains(number))
}

/// Parses a duration with its unit: `300ms`, `5s`, `1m 30s`.
pub fn duration(range: RangeInclusive<Duration>) -> impl Fn(&str) -> Parsed<Duration> + Clone {
    let min = humantime::format_duration(*range.start());
    let max = humantime::format_duration(*range.end());
    let expected = format!("a duration from {min} to {max}, such as 5s");
    move |text| match humantime::parse_duration(text) {
        Ok(duration) if range.contains(&duration) => Ok(duration),
        _ => Err(expected.clone()),
    }
}

/// Parses a value that may be empty.
pub fn optional<T>(parse: impl Fn(&str) -> Parsed<T>) -> impl Fn(&str) -> Parsed<Option<T>> {
    move |text| match text {
        "" => Ok(None),
        text => parse(text).map(Some),
    }
}

/// Parses one of several words.
pub fn one_of<T: Copy>(words: &'static [(&'static str, T)]) -> impl Fn(&str) -> Parsed<T> {
    move |text| {
        let mut expected = Vec::new();
        for &(word, value) in words {
            if word == text {
                return Ok(value);
            }
            expected.push(word);
        }
        Err(expected.join(" or "))
    }
}
