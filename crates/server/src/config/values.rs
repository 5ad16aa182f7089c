use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs,
    net::SocketAddr,
    ops::RangeInclusive,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use secrecy::SecretString;

use super::{
    error::ConfigError,
    key::Key,
    setting::{Setting, Value},
    sources::{MergedSettings, Sources},
};

/// The values of the sources. Each error about them names the key and the source of its value.
pub(super) struct Values {
    settings: BTreeMap<String, Setting>,
    /// Values that other values imply, by the name of the key that is not set.
    derived: BTreeMap<&'static str, &'static str>,
    /// Content of the files with secrets that were read, by the name of the key.
    secret_files: BTreeMap<&'static str, SecretString>,
    errors: Vec<String>,
    warnings: Vec<String>,
    /// Whether values may be missing.
    incomplete: bool,
    /// Names of the keys that have an error.
    invalid: BTreeSet<&'static str>,
}

impl Values {
    pub(super) fn collect(sources: &Sources, keys: &[&Key]) -> Self {
        let MergedSettings { settings, errors, warnings, incomplete } = sources.collect(keys);
        let (derived, secret_files, invalid) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { settings, derived, secret_files, errors, warnings, incomplete, invalid }
    }

    /// Returns the value of a key for display.
    pub(super) fn show(&self, key: &Key) -> String {
        let texts = self.texts(key).unwrap_or_default();
        if !key.secret {
            return texts.join(",");
        }
        let is_set = self.settings.contains_key(&key.file_key()) || split(&texts, SECRETS).next().is_some();
        if is_set { "(set)" } else { "(not set)" }.to_owned()
    }

    /// Returns the value of a key for comparison: its text, or the content of its file after the secret was read.
    pub(super) fn current(&self, key: &Key) -> SecretString {
        let text = || self.texts(key).unwrap_or_default().join(",").into();
        self.secret_files.get(key.name).cloned().unwrap_or_else(text)
    }

    /// Parses the value of a key. If it is invalid, adds an error and returns the default.
    pub(super) fn read<T>(&mut self, key: &Key, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let error = match self.settings.get(key.name).map(|setting| &setting.value) {
            None => None,
            Some(Value::Text(text)) => match parse(text.trim()) {
                Ok(value) => return value,
                Err(expected) => Some(format!("must be {expected}, not {text:?}")),
            },
            Some(_) => Some("must be one value".to_owned()),
        };
        if let Some(error) = error {
            self.add_error(key, &error);
        }
        parse(key.default).expect("the default is valid")
    }

    /// Returns the items of a list: an array in TOML, or a text with commas.
    pub(super) fn read_list(&mut self, key: &Key) -> Vec<String> {
        split(&self.checked_texts(key), &[',']).map(str::to_owned).collect()
    }

    /// Returns the content of the file that a key names, if it is set.
    pub(super) fn read_file(&mut self, key: &Key) -> Option<String> {
        let path = Some(self.read(key, |path| Ok(path.to_owned()))).filter(|path| !path.is_empty())?;
        let content = fs::read_to_string(&path);
        content.map_err(|error| self.add_error(key, &format!("names {path}, which cannot be read: {error}"))).ok()
    }

    /// Returns a secret from its key or from the file of the key `…_file`.
    pub(super) fn read_secret(&mut self, key: &Key) -> Option<SecretString> {
        let texts = self.secret_texts(key);
        texts.iter().map(|text| text.trim()).find(|secret| !secret.is_empty()).map(SecretString::from)
    }

    /// Returns a list of secrets: an array in TOML, or a text with commas or line ends. It can be in a file, too.
    pub(super) fn read_secrets(&mut self, key: &Key) -> Vec<SecretString> {
        split(&self.secret_texts(key), SECRETS).map(SecretString::from).collect()
    }

    fn secret_texts(&mut self, key: &Key) -> Vec<String> {
        let file_key = key.file_key();
        let Some(file) = self.settings.get(&file_key) else { return self.checked_texts(key) };
        if self.settings.contains_key(key.name) {
            let error = format!("and {file_key} ({}) must not both be set", file.source);
            self.add_error(key, &error);
            return Vec::new();
        }
        let error = match &file.value {
            Value::Text(path) => match fs::read_to_string(path) {
                Ok(text) if split(&[&text], SECRETS).next().is_some() => {
                    self.secret_files.insert(key.name, text.as_str().into());
                    return vec![text];
                }
                Ok(_) => "is empty".to_owned(),
                Err(error) => format!("cannot be read: {error}"),
            },
            _ => "must be in one file".to_owned(),
        };
        self.add_error(key, &error);
        Vec::new()
    }

    fn checked_texts(&mut self, key: &Key) -> Vec<String> {
        self.texts(key).unwrap_or_else(|| {
            self.add_error(key, "must be a list of texts");
            Vec::new()
        })
    }

    /// Returns the text of a key, or the texts of its array. `None`: the array contains arrays or tables.
    fn texts(&self, key: &Key) -> Option<Vec<String>> {
        if let Some(&derived) = self.derived.get(key.name) {
            return Some(vec![derived.to_owned()]);
        }
        match self.settings.get(key.name).map(|setting| &setting.value) {
            None => Some(vec![key.default.to_owned()]),
            Some(Value::Text(text)) => Some(vec![text.clone()]),
            Some(Value::List(texts)) => Some(texts.clone()),
            Some(Value::Nested) => None,
        }
    }

    /// Sets the value that other values imply for a key that is not set.
    pub(super) fn derive(&mut self, key: &Key, value: &'static str) {
        self.derived.insert(key.name, value);
    }

    /// Adds an error about the first key if a rule about several keys is violated. If one of them has an error already,
    /// or if values may be missing, the rule cannot be judged.
    pub(super) fn require(&mut self, satisfied: bool, keys: &[&Key], rule: &str) {
        if !satisfied && !self.incomplete && !keys.iter().any(|key| self.invalid.contains(key.name)) {
            self.add_error(keys[0], rule);
        }
    }

    pub(super) fn add_error(&mut self, key: &Key, error: &str) {
        self.errors.push(format!("{} {error}", self.label(key)));
        self.invalid.insert(key.name);
    }

    pub(super) fn add_warning(&mut self, key: &Key, warning: &str) {
        self.warnings.push(format!("{} {warning}", self.label(key)));
    }

    /// Returns the name of a key and the source of its value. If it has no value: the variable that can set it.
    pub(super) fn label(&self, key: &Key) -> String {
        let file = self.settings.get(&key.file_key()).filter(|_| key.secret);
        let source = match (self.settings.get(key.name), file) {
            (Some(setting), _) => setting.source.to_string(),
            // It can contain a password.
            (None, Some(Setting { value: Value::Text(url), source, .. })) if url.contains("://") => {
                format!("{source} names a URL, not a file")
            }
            (None, Some(Setting { value: Value::Text(path), source, .. })) => format!("{path}, named by {source}"),
            (None, Some(file)) => file.source.to_string(),
            (None, None) if key.default.is_empty() => key.variable(),
            (None, None) => "default".to_owned(),
        };
        format!("{} ({source})", key.name)
    }

    /// Returns the warnings, or all errors.
    pub(super) fn finish(self) -> Result<Vec<String>, ConfigError> {
        if self.errors.is_empty() { Ok(self.warnings) } else { Err(ConfigError(self.errors)) }
    }
}

/// Separators of secrets.
const SECRETS: &[char] = &[',', '\n'];

/// Splits texts at separators into trimmed items. Empty items are dropped.
fn split<'a>(texts: &'a [impl AsRef<str>], separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    texts.iter().flat_map(move |text| text.as_ref().split(separators)).map(str::trim).filter(|item| !item.is_empty())
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080".to_owned())
}

/// Parses a path that may be empty. Every text is one.
#[expect(clippy::unnecessary_wraps, reason = "every parser returns a result")]
pub(super) fn path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| text.into()))
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

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    one_of(&[("true", true), ("false", false)])(text)
}

pub(super) fn one_of<T: Clone>(choices: &[(&str, T)]) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| choice.clone());
        chosen.ok_or_else(|| choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or "))
    }
}
