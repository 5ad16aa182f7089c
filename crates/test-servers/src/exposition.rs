use std::str::FromStr;

/// The value of a series, which is a name and its labels, in the exposition of metrics.
#[track_caller]
#[must_use]
pub fn sample<T: FromStr>(exposition: &str, series: &str) -> T {
    let value = exposition
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no value of {series}:\n{exposition}"))
}
