use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs,
};

use secrecy::{ExposeSecret, SecretString};

use super::{
    ConfigError,
    sources::{Setting, unknown, variable},
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

/// Declares and reads keys: `/// description`, then `variable = kind("name", …);`. The kind is a method of `Values`:
/// `value` with a default and a parser, `list`, `secret`, `secrets` or `file`.
macro_rules! keys {
    ($values:ident, $(
        $(#[doc = $line:literal])+
        $variable:ident = $kind:ident($name:literal $(, $argument:expr)*);
    )+) => {
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
    pub(super) keys: Vec<Key>,
    /// Values that other values imply, and why, by the name of the key that is not set.
    pub(super) implied: BTreeMap<&'static str, (&'static str, &'static str)>,
    /// The secrets that were read, from a file or not, by the name of the key.
    pub(super) secrets: BTreeMap<&'static str, SecretString>,
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
        let parsed = self.settings.get(name).map(|setting| match parse(setting.text.trim()) {
            _ if setting.is_array => Err("must be one value".to_owned()),
            parsed => parsed.map_err(|expected| format!("must be {expected}, not {:?}", setting.text)),
        });
        match parsed {
            Some(Ok(value)) => return value,
            Some(Err(error)) => self.add_error(name, &error),
            None => {}
        }
        parse(default).expect("the default is valid")
    }

    /// Returns the items of a list: an array in TOML, or a text with commas.
    pub(super) fn list(&mut self, name: &'static str, description: &'static str) -> Vec<String> {
        self.declare(name, description, "", false);
        let text = self.settings.get(name).map_or("", |setting| &setting.text);
        items(text).map(str::to_owned).collect()
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

    /// Returns a list of secrets: an array in TOML, or a text with commas or line ends. It can be in a file, too.
    pub(super) fn secrets(&mut self, name: &'static str, description: &'static str) -> Vec<SecretString> {
        let secrets = self.secret(name, description);
        items(secrets.as_ref().map_or("", ExposeSecret::expose_secret)).map(SecretString::from).collect()
    }

    /// Returns a secret from its key or from the file of the key `…_file`.
    pub(super) fn secret(&mut self, name: &'static str, description: &'static str) -> Option<SecretString> {
        self.declare(name, description, "", true);
        let (setting, file_key) = (self.settings.get(name), file_key(name));
        let read = match (setting, self.settings.get(&file_key)) {
            (Some(_), Some(file)) => Err(format!("and {file_key} ({}) must not both be set", file.source)),
            (None, Some(file)) => match fs::read_to_string(&file.text) {
                Ok(text) if items(&text).next().is_some() => Ok(text),
                Ok(_) => Err("is empty".to_owned()),
                Err(error) => Err(format!("cannot be read: {error}")),
            },
            (setting, None) => Ok(setting.map(|setting| setting.text.clone()).unwrap_or_default()),
        };
        match read {
            Ok(text) => {
                self.secrets.insert(name, text.as_str().into());
                Some(text.trim().into()).filter(|_| items(&text).next().is_some())
            }
            Err(error) => {
                self.add_error(name, &error);
                None
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
            (None, Some(file)) if file.text.contains("://") => format!("{} names a URL, not a file", file.source),
            (None, Some(file)) => format!("{}, named by {}", file.text, file.source),
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
}

/// Returns the key that names a file with this secret.
pub(super) fn file_key(name: &str) -> String {
    format!("{name}_file")
}

fn section(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Splits a text at commas and line ends into trimmed items. Empty items are dropped.
pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty())
}
