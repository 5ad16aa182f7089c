use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs,
};

use secrecy::{ExposeSecret, SecretString};

use super::{
    Config, ConfigError,
    declaration::{Key, file_key},
    sources::{unknown, variable},
};

/// A value that a source sets.
pub(super) struct Setting {
    /// The text, or the items of an array with commas between them.
    pub(super) text: String,
    pub(super) is_array: bool,
    /// As errors name it: the file and the line, the variable, the flag, or the key that implies the value.
    pub(super) source: String,
}

impl Setting {
    pub(super) fn new(text: &str, source: &str) -> Self {
        Self { text: text.to_owned(), is_array: false, source: source.to_owned() }
    }
}

/// The values of the sources. Each error about them names the key and the source of its value.
#[derive(Default)]
pub(crate) struct Values {
    /// What the sources set, by the name of a key, which may be unknown.
    pub(super) settings: BTreeMap<String, Setting>,
    /// The keys that were read.
    pub(super) keys: Vec<Key>,
    /// Their values: of a secret in a file, the content of the file.
    pub(super) current: BTreeMap<&'static str, SecretString>,
    pub(super) warnings: Vec<String>,
    pub(super) errors: Vec<String>,
    /// Names of the keys that have an error.
    invalid: BTreeSet<&'static str>,
    /// Whether values may be missing, because the file could not be read.
    is_incomplete: bool,
}

impl Values {
    fn declare(&mut self, name: &'static str, description: &'static str, default: &'static str, is_secret: bool) {
        if !self.keys.iter().any(|key| key.name == name) {
            self.keys.push(Key { name, default, description: description.trim(), is_secret });
        }
        let text = self.settings.get(name).map_or(default, |setting| &setting.text);
        self.current.insert(name, text.into());
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
        let value = parsed.and_then(|parsed| self.checked(name, parsed));
        value.unwrap_or_else(|| parse(default).expect("the default is valid"))
    }

    /// Parses a list: an array in TOML, or a text with commas. If it is invalid, adds an error and returns the default.
    pub(super) fn list<T, E: Display>(
        &mut self,
        name: &'static str,
        description: &'static str,
        parse: impl Fn(&[String]) -> Result<T, E>,
    ) -> T {
        self.declare(name, description, "", false);
        let text = self.settings.get(name).map_or("", |setting| &setting.text);
        let items: Vec<_> = items(text).map(str::to_owned).collect();
        let parsed = self.checked(name, parse(&items));
        parsed.or_else(|| parse(&[]).ok()).expect("an empty list is valid")
    }

    /// Returns the content of the file that a key names, if it is set.
    pub(super) fn file(&mut self, name: &'static str, description: &'static str) -> Option<String> {
        let path = self.value(name, description, "", |path| Ok(path.to_owned()));
        let content = (!path.is_empty()).then(|| fs::read_to_string(&path));
        let content = content.map(|read| read.map_err(|error| format!("names {path}, which cannot be read: {error}")));
        self.checked(name, content.transpose())?
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
        let text = self.checked(name, read)?;
        self.current.insert(name, text.as_str().into());
        items(&text).next().is_some().then(|| text.trim().into())
    }

    /// Sets a key to the value that another key implies.
    pub(super) fn imply(&mut self, name: &'static str, value: &'static str, reason: &'static str) {
        self.settings.insert(name.to_owned(), Setting::new(value, reason));
        self.current.insert(name, value.into());
    }

    /// Adds an error about the first key if a rule about several keys is violated. If one of them has an error already,
    /// or if values may be missing, the rule cannot be judged.
    pub(super) fn require(&mut self, satisfied: bool, names: &[&'static str], rule: &str) {
        debug_assert!(names.iter().all(|name| self.keys.iter().any(|key| key.name == *name)), "{names:?}");
        if !satisfied && !self.is_incomplete && !names.iter().any(|name| self.invalid.contains(name)) {
            self.add_error(names[0], rule);
        }
    }

    fn add_error(&mut self, name: &'static str, error: &str) {
        let error = format!("{} {error}", self.label(name));
        // Two sections can read the same key.
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
        self.invalid.insert(name);
    }

    /// Adds an error about a source whose values are missing.
    pub(super) fn add_incomplete(&mut self, error: String) {
        self.is_incomplete = true;
        self.errors.push(error);
    }

    /// Adds an error that says no more than the error of a parser.
    pub(super) fn checked<T>(&mut self, name: &'static str, parsed: Result<T, impl Display>) -> Option<T> {
        parsed.map_err(|error| self.add_error(name, &error.to_string())).ok()
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
        let known = Config::all_keys();
        let names: BTreeSet<_> = known.iter().flat_map(Key::names).collect();
        let is_read = |name: &str| {
            let section = |name: &str| name.split('.').next().map(str::to_owned);
            let is_in = |key: &Key| section(key.name) == section(name);
            self.keys.iter().any(is_in) || !known.iter().any(is_in)
        };
        let strange = self.settings.iter().filter(|(name, _)| !names.contains(*name) && is_read(name));
        let mut errors: Vec<_> = strange.map(|(name, setting)| unknown(name, &setting.source, &known)).collect();
        errors.append(&mut self.errors);
        match read {
            Some(read) if errors.is_empty() => Ok((read, self.warnings)),
            _ => Err(ConfigError(errors)),
        }
    }
}

/// Splits a text at commas and line ends into trimmed items. Empty items are dropped.
pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty())
}
