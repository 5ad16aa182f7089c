//! Parsers of values. The error of each says what is expected, as in `must be …, not "value"`.

use std::{
    fmt::Display, net::SocketAddr, ops::RangeInclusive, path::PathBuf, str::FromStr, time::Duration,
};

/// Parses a text, and requires of the value what its type does not.
pub fn parsed<T: FromStr>(
    expected: impl Display,
    is_valid: impl Fn(&T) -> bool,
) -> impl Fn(&str) -> Result<T, String> {
    move |text| match text.parse() {
        Ok(value) if is_valid(&value) => Ok(value),
        _ => Err(expected.to_string()),
    }
}

/// Parses an IP address with a port.
///
/// # Errors
/// What is expected.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080";
    text.parse().map_err(|_| expected.to_owned())
}

/// Parses a path, which may not be empty.
///
/// # Errors
/// What is expected.
pub fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("the path of a file".to_owned());
    }
    Ok(text.into())
}

/// Parses a whole number in a range.
pub fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> {
    let expected = format!("a whole number from {} to {}", range.start(), range.end());
    parsed(expected, move |number| range.contains(number))
}

/// Parses a duration with its unit: `300ms`, `5s`, `1m 30s`.
pub fn duration(
    range: RangeInclusive<Duration>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    let min = humantime::format_duration(*range.start());
    let max = humantime::format_duration(*range.end());
    let expected = format!("a duration from {min} to {max}, such as 5s");
    move |text| match humantime::parse_duration(text) {
        Ok(duration) if range.contains(&duration) => Ok(duration),
        _ => Err(expected.clone()),
    }
}

/// Parses a value that may be empty.
pub fn optional<T>(
    parse: impl Fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Option<T>, String> {
    move |text| match text {
        "" => Ok(None),
        text => parse(text).map(Some),
    }
}

/// Parses one of several words.
pub fn one_of<T: Clone, const N: usize>(
    choices: [(&str, T); N],
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        for (name, choice) in &choices {
            if *name == text {
                return Ok(choice.clone());
            }
        }
        Err(choices.each_ref().map(|(name, _)| *name).join(" or "))
    }
}
