use std::{fmt::Display, net::SocketAddr, ops::RangeInclusive, str::FromStr, time::Duration};

use secrecy::SecretString;

use super::{Config, ConfigError, Key, Sources};

/// What the keys are set to, and what is wrong with it so far.
pub(super) struct Values {
    values: config::Config,
    problems: Vec<String>,
}

impl Values {
    pub(super) fn collect(sources: &Sources) -> Self {
        let mut problems = Vec::new();
        let mut builder = config::Config::builder();
        for key in Config::all_keys().filter(|key| !key.secret) {
            builder = builder.set_default(key.name, key.default).expect("the name of a key is a path");
        }
        for (name, value) in sources.collect(&mut problems) {
            builder = builder.set_override(name, value).expect("the name of a key is a path");
        }
        Self { values: builder.build().expect("only sources that were read are built"), problems }
    }

    /// The key's value as people may see it.
    pub(super) fn show(&mut self, key: &Key) -> String {
        if key.secret {
            return if self.read_secrets(key).is_empty() { "(not set)" } else { "(set)" }.to_owned();
        }
        self.texts(key).unwrap_or_default().join(",")
    }

    /// The key's value; a problem where it cannot be parsed.
    pub(super) fn read<T>(&mut self, key: &Key, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let Ok(text) = self.values.get_string(key.name) else {
            self.problem(key, "must be one value");
            return None;
        };
        match parse(text.trim()) {
            Ok(value) => Some(value),
            Err(expected) => {
                self.problem(key, &format!("must be {expected}, not {text:?}"));
                None
            }
        }
    }

    /// The items of a key that holds a list: an array in TOML, otherwise separated by commas.
    pub(super) fn read_list(&mut self, key: &Key) -> Vec<String> {
        items(&self.texts(key).unwrap_or_default(), &[',']).map(str::to_owned).collect()
    }

    /// The text of the file that a key names, if it names one.
    pub(super) fn read_file(&mut self, key: &Key) -> Option<String> {
        let path = self.read(key, |path| Ok(path.to_owned())).filter(|path| !path.is_empty())?;
        let text = std::fs::read_to_string(path);
        text.map_err(|error| self.problem(key, &format!("cannot be read: {error}"))).ok()
    }

    /// The secret of a key that holds one. It may stand in a file of its own.
    pub(super) fn read_secret(&mut self, key: &Key) -> Option<SecretString> {
        let texts = self.secret_texts(key);
        texts.iter().map(|text| text.trim()).find(|secret| !secret.is_empty()).map(SecretString::from)
    }

    /// The secrets of a key that holds a list: an array in TOML, otherwise separated by commas or new lines. They
    /// may stand in a file of their own.
    pub(super) fn read_secrets(&mut self, key: &Key) -> Vec<SecretString> {
        items(&self.secret_texts(key), &[',', '\n']).map(SecretString::from).collect()
    }

    fn secret_texts(&mut self, key: &Key) -> Vec<String> {
        let given = self.texts(key);
        let from_file = self.values.get_string(&key.file_name()).ok().map(std::fs::read_to_string);
        match (given, from_file) {
            (None, None) => Vec::new(),
            (Some(texts), None) => texts,
            (None, Some(Ok(text))) => vec![text],
            (None, Some(Err(error))) => {
                self.problem(key, &format!("cannot be read from its file: {error}"));
                Vec::new()
            }
            (Some(_), Some(_)) => {
                self.problem(key, "must be given either directly or by a file");
                Vec::new()
            }
        }
    }

    /// The text that a key is set to, or those of its array.
    fn texts(&mut self, key: &Key) -> Option<Vec<String>> {
        match self.values.get_array(key.name) {
            Ok(items) => {
                items.into_iter().map(|item| item.into_string().ok()).collect::<Option<Vec<_>>>().or_else(|| {
                    self.problem(key, "must be a list of texts");
                    Some(Vec::new())
                })
            }
            Err(_) => self.values.get_string(key.name).ok().map(|text| vec![text]),
        }
    }

    pub(super) fn problem(&mut self, key: &Key, problem: &str) {
        self.problems.push(format!("{} ({}) {problem}", key.name, key.variable()));
    }

    pub(super) fn finish(self) -> Result<(), ConfigError> {
        if self.problems.is_empty() { Ok(()) } else { Err(ConfigError(self.problems)) }
    }
}

/// What stands between the separators, where something does.
fn items<'a>(texts: &'a [String], separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    texts.iter().flat_map(move |text| text.split(separators)).map(str::trim).filter(|item| !item.is_empty())
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080".to_owned())
}

pub(super) fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl FnOnce(&str) -> Result<T, String> {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Durations are written with their unit: `300ms`, `5s`, `1m 30s`.
pub(super) fn duration(range: RangeInclusive<Duration>) -> impl FnOnce(&str) -> Result<Duration, String> {
    move |text| {
        let duration = humantime::parse_duration(text).ok().filter(|duration| range.contains(duration));
        duration.ok_or_else(|| {
            let [least, most] = [range.start(), range.end()].map(|bound| humantime::format_duration(*bound));
            format!("a duration from {least} to {most}, such as 5s")
        })
    }
}

pub(super) fn one_of<T: Clone>(choices: &[(&str, T)]) -> impl FnOnce(&str) -> Result<T, String> {
    move |text| {
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| choice.clone());
        chosen.ok_or_else(|| choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or "))
    }
}
