//! Parsers of values. An error says what is expected: `must be …, not "value"`.

use std::{fmt::Display, net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

/// Parses a text, and requires of the value what its type does not.
pub(super) fn parsed<T: FromStr>(
    expected: impl Display,
    is_valid: impl Fn(&T) -> bool,
) -> impl Fn(&str) -> Result<T, String> {
    move |text| text.parse().ok().filter(&is_valid).ok_or_else(|| expected.to_string())
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    parsed("an IP address and a port, such as 127.0.0.1:8080 or [::]:8080", |_| true)(text)
}

pub(super) fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> {
    parsed(format!("a whole number from {} to {}", range.start(), range.end()), move |number| range.contains(number))
}

/// Parses a duration with its unit: `300ms`, `5s`, `1m 30s`.
pub(crate) fn duration(range: RangeInclusive<Duration>) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let duration = humantime::parse_duration(text).ok().filter(|duration| range.contains(duration));
        duration.ok_or_else(|| {
            let [min, max] = [range.start(), range.end()].map(|bound| humantime::format_duration(*bound));
            format!("a duration from {min} to {max}, such as 5s")
        })
    }
}

/// Parses a value that may be empty.
pub(super) fn optional<T>(parse: impl Fn(&str) -> Result<T, String>) -> impl Fn(&str) -> Result<Option<T>, String> {
    move |text| if text.is_empty() { Ok(None) } else { parse(text).map(Some) }
}

pub(super) fn one_of<T: Clone, const N: usize>(choices: [(&str, T); N]) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| choice.clone());
        chosen.ok_or_else(|| choices.each_ref().map(|(name, _)| *name).join(" or "))
    }
}
