use std::{fmt::Display, fs, net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

use secrecy::SecretString;

use super::{error::ConfigError, key::Key, sources::Sources};

pub(super) struct Values {
    values: config::Config,
    errors: Vec<String>,
}

impl Values {
    pub(super) fn collect(sources: &Sources, keys: &[&Key]) -> Self {
        let mut errors = Vec::new();
        let mut builder = config::Config::builder();
        for key in keys.iter().filter(|key| !key.secret) {
            builder = builder.set_default(key.name, key.default).expect("a key is a path");
        }
        for (name, value) in sources.collect(keys, &mut errors) {
            builder = builder.set_override(name, value).expect("a known key is a path");
        }
        Self { values: builder.build().expect("defaults and overrides cannot fail"), errors }
    }

    /// Returns the value of a key for display.
    pub(super) fn show(&mut self, key: &Key) -> String {
        if key.secret {
            return if self.read_secrets(key).is_empty() { "(not set)" } else { "(set)" }.to_owned();
        }
        self.texts(key).unwrap_or_default().join(",")
    }

    /// Parses the value of a key. If it is invalid, adds an error and returns the default.
    pub(super) fn read<T>(&mut self, key: &Key, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let error = match self.values.get_string(key.name) {
            Ok(text) => match parse(text.trim()) {
                Ok(value) => return value,
                Err(expected) => format!("must be {expected}, not {text:?}"),
            },
            Err(_) => "must be one value".to_owned(),
        };
        self.add_error(key, &error);
        parse(key.default).expect("the default is valid")
    }

    /// Returns the items of a list: an array in TOML, or a text with commas.
    pub(super) fn read_list(&mut self, key: &Key) -> Vec<String> {
        split(&self.texts(key).unwrap_or_default(), &[',']).map(str::to_owned).collect()
    }

    /// Returns the content of the file that a key names, if it is set.
    pub(super) fn read_file(&mut self, key: &Key) -> Option<String> {
        let path = Some(self.read(key, |path| Ok(path.to_owned()))).filter(|path| !path.is_empty())?;
        fs::read_to_string(path).map_err(|error| self.add_error(key, &format!("cannot be read: {error}"))).ok()
    }

    /// Returns a secret from its key or from the file of the key `…_file`.
    pub(super) fn read_secret(&mut self, key: &Key) -> Option<SecretString> {
        let texts = self.secret_texts(key);
        texts.iter().map(|text| text.trim()).find(|secret| !secret.is_empty()).map(SecretString::from)
    }

    /// Returns a list of secrets: an array in TOML, or a text with commas or line ends. It can be in a file, too.
    pub(super) fn read_secrets(&mut self, key: &Key) -> Vec<SecretString> {
        split(&self.secret_texts(key), &[',', '\n']).map(SecretString::from).collect()
    }

    fn secret_texts(&mut self, key: &Key) -> Vec<String> {
        let direct = self.texts(key);
        let from_file = self.values.get_string(&key.file_key()).ok().map(fs::read_to_string);
        match (direct, from_file) {
            (texts, None) => return texts.unwrap_or_default(),
            (None, Some(Ok(text))) => return vec![text],
            (None, Some(Err(error))) => self.add_error(key, &format!("cannot be read from its file: {error}")),
            (Some(_), Some(_)) => self.add_error(key, "must be set either directly or by a file, not both"),
        }
        Vec::new()
    }

    /// Returns the text of a key, or the texts of its array.
    fn texts(&mut self, key: &Key) -> Option<Vec<String>> {
        let Ok(array) = self.values.get_array(key.name) else {
            return self.values.get_string(key.name).ok().map(|text| vec![text]);
        };
        let texts: Option<_> = array.into_iter().map(|value| value.into_string().ok()).collect();
        texts.or_else(|| {
            self.add_error(key, "must be a list of texts");
            Some(Vec::new())
        })
    }

    pub(super) fn add_error(&mut self, key: &Key, error: &str) {
        self.errors.push(format!("{} ({}) {error}", key.name, key.variable()));
    }

    pub(super) const fn error_count(&self) -> usize {
        self.errors.len()
    }

    pub(super) fn finish(self) -> Result<(), ConfigError> {
        if self.errors.is_empty() { Ok(()) } else { Err(ConfigError(self.errors)) }
    }
}

/// Splits texts at separators into trimmed items. Empty items are dropped.
fn split<'a>(texts: &'a [String], separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    texts.iter().flat_map(move |text| text.split(separators)).map(str::trim).filter(|item| !item.is_empty())
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080".to_owned())
}

pub(super) fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Parses a duration with its unit: `300ms`, `5s`, `1m 30s`.
pub(super) fn duration(range: RangeInclusive<Duration>) -> impl Fn(&str) -> Result<Duration, String> {
    move |text| {
        let duration = humantime::parse_duration(text).ok().filter(|duration| range.contains(duration));
        duration.ok_or_else(|| {
            let [min, max] = [range.start(), range.end()].map(|bound| humantime::format_duration(*bound));
            format!("a duration from {min} to {max}, such as 5s")
        })
    }
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    one_of(&[("true", true), ("false", false)])(text)
}

pub(super) fn one_of<T: Clone>(choices: &[(&str, T)]) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| choice.clone());
        chosen.ok_or_else(|| choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or "))
    }
}
