//! Declarations of keys, the parsers of their values, and the file that `config init` prints. The error of a parser
//! says what is expected: `must be …, not "value"`.

use std::{fmt::Display, iter, net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

use super::{Config, values::literal};

const HEAD: &str = "\
# The configuration of the animal store. Each key is a comment with its default: remove the # to change a key.
# To check the file: animal-store check-config --config FILE
";

/// A key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name as in a TOML file: `section.name`.
    pub name: &'static str,
    /// Default value. Empty: none.
    pub default: &'static str,
    /// Description in Markdown: lines that begin with a space.
    pub description: &'static [&'static str],
    /// Whether the value must never be shown. A secret can also be in the file that the key `…_file` names.
    pub is_secret: bool,
}

impl Key {
    /// Returns the names that set the key: its own, and that of the file with the secret.
    pub(super) fn names(&self) -> impl Iterator<Item = String> + use<> {
        iter::once(self.name.to_owned()).chain(self.is_secret.then(|| file_key(self.name)))
    }
}

/// Returns the key that names a file with this secret.
pub(super) fn file_key(name: &str) -> String {
    format!("{name}_file")
}

/// Declares and reads keys: `/// description`, then `variable = kind("name", …);`. The kind is a method of `Values`:
/// `value` with a default and a parser, `list` with a parser, `secret`, `secrets`, `file` or `key_file`.
macro_rules! keys {
    ($values:ident, $(
        $(#[doc = $line:literal])+
        $variable:ident = $kind:ident($name:literal $(, $argument:expr)*);
    )+) => {$(
        let key = crate::config::Key { name: $name, default: "", description: &[$($line),+], is_secret: false };
        let $variable = $values.$kind(key $(, $argument)*);
    )+};
}
pub(super) use keys;

/// Parses a text, and requires of the value what its type does not.
pub(super) fn parsed<T: FromStr>(
    expected: impl Display,
    is_valid: impl Fn(&T) -> bool,
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        text.parse()
            .ok()
            .filter(&is_valid)
            .ok_or_else(|| expected.to_string())
    }
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    parsed(
        "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080",
        |_| true,
    )(text)
}

pub(super) fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> {
    parsed(
        format!("a whole number from {} to {}", range.start(), range.end()),
        move |number| range.contains(number),
    )
}

/// Parses a duration with its unit: `300ms`, `5s`, `1m 30s`.
pub(crate) fn duration(
    range: RangeInclusive<Duration>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let duration = humantime::parse_duration(text)
            .ok()
            .filter(|duration| range.contains(duration));
        duration.ok_or_else(|| {
            let [min, max] =
                [range.start(), range.end()].map(|bound| humantime::format_duration(*bound));
            format!("a duration from {min} to {max}, such as 5s")
        })
    }
}

/// Parses a value that may be empty.
pub(super) fn optional<T>(
    parse: impl Fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Option<T>, String> {
    move |text| {
        if text.is_empty() {
            Ok(None)
        } else {
            parse(text).map(Some)
        }
    }
}

pub(super) fn one_of<T: Clone, const N: usize>(
    choices: [(&str, T); N],
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let chosen = choices
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, choice)| choice.clone());
        chosen.ok_or_else(|| choices.each_ref().map(|(name, _)| *name).join(" or "))
    }
}

/// Returns a configuration file: each key as a comment with its description, except those that are set here.
///
/// # Errors
/// If a key that is set is unknown or a secret. The message does not repeat the value.
pub fn template(set: &[(String, String)]) -> Result<String, String> {
    let keys = Config::all_keys();
    let is_settable = |name: &String| keys.iter().any(|key| key.name == name && !key.is_secret);
    if let Some((name, _)) = set.iter().find(|(name, _)| !is_settable(name)) {
        return Err(format!("{name} (--set) is not a key, or a secret"));
    }
    let mut text = HEAD.to_owned();
    for Key {
        name,
        default,
        description,
        ..
    } in keys
    {
        let value = set.iter().rfind(|(set, _)| set == name);
        let (mark, value) = value.map_or(("#", default), |(_, value)| ("", value));
        text += "\n";
        text.extend(description.iter().flat_map(|line| ["#", line, "\n"]));
        text.extend([mark, name, " = ", &literal(value), "\n"]);
    }
    Ok(text)
}
