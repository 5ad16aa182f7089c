use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs,
};

use secrecy::SecretString;

use super::{
    ConfigError,
    print::{assignment, secret_assignment},
    sources::{Setting, Value, unknown, variable},
};

/// A key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name as in a TOML file: `section.name`.
    pub name: &'static str,
    /// Default value. Empty: none.
    pub default: &'static str,
    /// Description in Markdown, for the documentation.
    pub description: &'static str,
    /// Whether the value must never be shown. A secret can also be in the file that the key `…_file` names.
    pub secret: bool,
}

/// Declares and reads keys: `/// description`, then `variable = kind("name", …);`. The kind is a method of [`Values`]:
/// `value` with a default and a parser, `list`, `secret`, `secrets` or `file`.
macro_rules! keys {
    ($values:ident, $($(#[doc = $line:literal])+ $variable:ident = $kind:ident($name:literal $(, $argument:expr)*);)+) => {
        $(let $variable = $values.$kind($name, concat!($($line),+) $(, $argument)*);)+
    };
}
pub(super) use keys;

/// The values of the sources. Each error about them names the key and the source of its value.
#[derive(Default)]
pub(crate) struct Values {
    /// What the sources set, by the name of a key.
    pub(super) settings: BTreeMap<String, Setting>,
    pub(super) unknown: Vec<Setting>,
    /// Errors of the sources themselves.
    pub(super) source_errors: Vec<String>,
    pub(super) warnings: Vec<String>,
    /// Whether values may be missing, because the file could not be read.
    pub(super) incomplete: bool,
    /// The keys that were read.
    keys: Vec<Key>,
    /// Values that other values imply, and why, by the name of the key that is not set.
    implied: BTreeMap<&'static str, (&'static str, &'static str)>,
    /// Content of the files with secrets that were read, by the name of the key.
    secret_files: BTreeMap<&'static str, SecretString>,
    errors: Vec<String>,
    /// Names of the keys that have an error.
    invalid: BTreeSet<&'static str>,
}

impl Values {
    fn declare(&mut self, name: &'static str, description: &'static str, default: &'static str, secret: bool) {
        if !self.keys.iter().any(|key| key.name == name) {
            self.keys.push(Key { name, default, description: description.trim(), secret });
        }
    }

    /// Parses the value of a key. If it is invalid, adds an error and returns the default.
    pub(super) fn value<T>(
        &mut self,
        name: &'static str,
        description: &'static str,
        default: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        self.declare(name, description, default, false);
        let error = match self.settings.get(name).map(|setting| &setting.value) {
            None => None,
            Some(Value::Text(text)) => match parse(text.trim()) {
                Ok(value) => return value,
                Err(expected) => Some(format!("must be {expected}, not {text:?}")),
            },
            Some(_) => Some("must be one value".to_owned()),
        };
        if let Some(error) = error {
            self.add_error(name, &error);
        }
        parse(default).expect("the default is valid")
    }

    /// Returns the items of a list: an array in TOML, or a text with commas.
    pub(super) fn list(&mut self, name: &'static str, description: &'static str) -> Vec<String> {
        self.declare(name, description, "", false);
        split(&self.checked_texts(name), &[',']).map(str::to_owned).collect()
    }

    /// Returns the content of the file that a key names, if it is set.
    pub(super) fn file(&mut self, name: &'static str, description: &'static str) -> Option<String> {
        let path = self.value(name, description, "", |path| Ok(path.to_owned()));
        if path.is_empty() {
            return None;
        }
        let content = fs::read_to_string(&path);
        content.map_err(|error| self.add_error(name, &format!("names {path}, which cannot be read: {error}"))).ok()
    }

    /// Returns a secret from its key or from the file of the key `…_file`.
    pub(super) fn secret(&mut self, name: &'static str, description: &'static str) -> Option<SecretString> {
        let texts = self.secret_texts(name, description);
        texts.iter().map(|text| text.trim()).find(|secret| !secret.is_empty()).map(SecretString::from)
    }

    /// Returns a list of secrets: an array in TOML, or a text with commas or line ends. It can be in a file, too.
    pub(super) fn secrets(&mut self, name: &'static str, description: &'static str) -> Vec<SecretString> {
        split(&self.secret_texts(name, description), SECRETS).map(SecretString::from).collect()
    }

    fn secret_texts(&mut self, name: &'static str, description: &'static str) -> Vec<String> {
        self.declare(name, description, "", true);
        let file_key = file_key(name);
        let Some(file) = self.settings.get(&file_key) else { return self.checked_texts(name) };
        let error = match &file.value {
            _ if self.settings.contains_key(name) => format!("and {file_key} ({}) must not both be set", file.source),
            Value::Text(path) => match fs::read_to_string(path) {
                Ok(text) if split(&[&text], SECRETS).next().is_some() => {
                    self.secret_files.insert(name, text.as_str().into());
                    return vec![text];
                }
                Ok(_) => "is empty".to_owned(),
                Err(error) => format!("cannot be read: {error}"),
            },
            _ => "must be in one file".to_owned(),
        };
        self.add_error(name, &error);
        Vec::new()
    }

    fn checked_texts(&mut self, name: &'static str) -> Vec<String> {
        match self.settings.get(name).map(|setting| &setting.value) {
            None => Vec::new(),
            Some(Value::Text(text)) => vec![text.clone()],
            Some(Value::List(texts)) => texts.clone(),
            Some(Value::Nested) => {
                self.add_error(name, "must be a list of texts");
                Vec::new()
            }
        }
    }

    /// Sets the value that the value of another key implies for a key that is not set.
    pub(super) fn imply(&mut self, name: &'static str, value: &'static str, reason: &'static str) {
        self.implied.insert(name, (value, reason));
    }

    /// Adds an error about the first key if a rule about several keys is violated. If one of them has an error already,
    /// or if values may be missing, the rule cannot be judged.
    pub(super) fn require(&mut self, satisfied: bool, names: &[&'static str], rule: &str) {
        debug_assert!(names.iter().all(|name| self.keys.iter().any(|key| key.name == *name)), "{names:?}");
        if !satisfied && !self.incomplete && !names.iter().any(|name| self.invalid.contains(name)) {
            self.add_error(names[0], rule);
        }
    }

    pub(super) fn add_error(&mut self, name: &'static str, error: &str) {
        let error = format!("{} {error}", self.label(name));
        // Two sections can read the same key.
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
        self.invalid.insert(name);
    }

    /// Adds an error that says no more than the error of a parser.
    pub(super) fn checked<T>(&mut self, name: &'static str, parsed: Result<T, impl Display>) -> Option<T> {
        parsed.map_err(|error| self.add_error(name, &error.to_string())).ok()
    }

    pub(super) fn add_warning(&mut self, name: &'static str, warning: &str) {
        self.warnings.push(format!("{} {warning}", self.label(name)));
    }

    /// Returns the name of a key and the source of its value. If it has no value: the variable that can set it.
    pub(super) fn label(&self, name: &str) -> String {
        let source = match (self.settings.get(name), self.settings.get(&file_key(name))) {
            (Some(setting), _) => setting.source.clone(),
            // It can contain a password.
            (None, Some(Setting { value: Value::Text(url), source, .. })) if url.contains("://") => {
                format!("{source} names a URL, not a file")
            }
            (None, Some(Setting { value: Value::Text(path), source, .. })) => format!("{path}, named by {source}"),
            (None, Some(file)) => file.source.clone(),
            (None, None) if self.keys.iter().any(|key| key.name == name && !key.default.is_empty()) => {
                "default".to_owned()
            }
            (None, None) => variable(name),
        };
        format!("{name} ({source})")
    }

    /// Returns what was read and the warnings, or all errors. `None` is an error that was added.
    ///
    /// An unknown key is an error unless it is in a section that was not read: a command does not depend on the rest.
    pub(super) fn finish<T>(mut self, read: Option<T>) -> Result<(T, Vec<String>), ConfigError> {
        let known = super::Config::all_keys();
        let is_read = |setting: &&Setting| {
            let is_in = |key: &Key| section(key.name) == section(&setting.name);
            self.keys.iter().any(is_in) || !known.iter().any(is_in)
        };
        let unknown = self.unknown.iter().filter(is_read).map(|setting| unknown(setting, &known));
        self.source_errors.extend(unknown);
        self.source_errors.append(&mut self.errors);
        match read {
            Some(read) if self.source_errors.is_empty() => Ok((read, self.warnings)),
            _ => Err(ConfigError(self.source_errors)),
        }
    }

    pub(super) fn into_keys(self) -> Vec<Key> {
        self.keys
    }

    /// Returns the values as lines of TOML, and for comparison: for a secret in a file, the content of the file.
    pub(super) fn show(&self) -> (Vec<String>, BTreeMap<&'static str, SecretString>) {
        let rows = self.keys.iter().map(|key| {
            let (text, source) = match (self.settings.get(key.name), self.implied.get(key.name)) {
                (_, Some((value, reason))) => ((*value).to_owned(), *reason),
                (Some(setting), _) => (setting.value.text(), setting.source.as_str()),
                (None, None) => (key.default.to_owned(), "default"),
            };
            let line = match self.settings.get(&file_key(key.name)) {
                Some(file) if key.secret => assignment(&file_key(key.name), &file.value.text(), &file.source),
                _ if key.secret && split(&[&text], SECRETS).next().is_some() => secret_assignment(key.name, source),
                _ => assignment(key.name, &text, source),
            };
            let current = self.secret_files.get(key.name).cloned();
            (line, (key.name, current.unwrap_or_else(|| text.into())))
        });
        rows.unzip()
    }
}

/// Returns the key that names a file with this secret.
pub(super) fn file_key(name: &str) -> String {
    format!("{name}_file")
}

fn section(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Separators of secrets.
const SECRETS: &[char] = &[',', '\n'];

/// Splits texts at separators into trimmed items. Empty items are dropped.
fn split<'a>(texts: &'a [impl AsRef<str>], separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    texts.iter().flat_map(move |text| text.as_ref().split(separators)).map(str::trim).filter(|item| !item.is_empty())
}
