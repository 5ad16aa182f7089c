use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs,
    path::{Path, PathBuf},
};

use animal_store_adapter_kit::{Believed, object_to_readers};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Config, ConfigError,
    declaration::{Key, file_key},
    sources::{unknown, variable},
};

/// The source of a value that no source sets.
const DEFAULT: &str = "default";

/// The value of a key.
pub(super) struct Setting {
    /// The text, or the items of an array with commas between them. For a secret in a file, the content of the file.
    pub(super) text: String,
    /// As errors name it: the file and the line, the variable, the flag, or the key that implies the value.
    pub(super) source: String,
}

impl Setting {
    pub(super) fn new(text: &str, source: &str) -> Self {
        Self {
            text: text.to_owned(),
            source: source.to_owned(),
        }
    }

    /// Whether it is empty, or has only empty items.
    fn is_blank(&self) -> bool {
        items(&self.text).next().is_none()
    }
}

/// The values of the sources. Each error about them names the key and the source of its value.
#[derive(Default)]
pub(crate) struct Values {
    /// What the sources set, by the name of a key, which may be unknown, and the defaults of the keys that were read.
    pub(super) settings: BTreeMap<String, Setting>,
    /// The keys that were read.
    pub(super) keys: Vec<Key>,
    pub(crate) warnings: Vec<String>,
    pub(super) errors: Vec<String>,
    /// Names of the keys that have an error.
    invalid: BTreeSet<&'static str>,
    /// Whether values may be missing, because the file could not be read.
    is_incomplete: bool,
}

impl Values {
    fn declare(&mut self, key: Key) {
        if !self.keys.iter().any(|known| known.name == key.name) {
            self.settings
                .entry(key.name.to_owned())
                .or_insert_with(|| Setting::new(key.default, DEFAULT));
            self.keys.push(key);
        }
    }

    /// Parses the value of a key. If it is invalid, adds an error and returns the default.
    pub(super) fn value<T>(
        &mut self,
        key: Key,
        default: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        self.declare(Key { default, ..key });
        let text = &self.settings[key.name].text;
        let parsed =
            parse(text.trim()).map_err(|expected| format!("must be {expected}, not {text:?}"));
        self.checked(key.name, parsed)
            .unwrap_or_else(|| parse(default).expect("the default is valid"))
    }

    /// Parses a list: an array in TOML, or a text with commas. If it is invalid, adds an error and returns the default.
    pub(super) fn list<T, E: Display>(
        &mut self,
        key: Key,
        parse: impl Fn(&[String]) -> Result<T, E>,
    ) -> T {
        self.declare(key);
        let items: Vec<_> = items(&self.settings[key.name].text)
            .map(str::to_owned)
            .collect();
        let parsed = self.checked(key.name, parse(&items));
        parsed
            .or_else(|| parse(&[]).ok())
            .expect("an empty list is valid")
    }

    /// Adds warnings about the other users who can change a file that the configuration names, or read its secrets.
    pub(super) fn judge(&mut self, path: &Path, has_secrets: bool) {
        let objections = [
            Believed::this_process()
                .and_owner_of_folder(path)
                .object(path),
            object_to_readers(path).filter(|_| has_secrets),
        ];
        for objection in objections.into_iter().flatten() {
            let warning = objection.to_string();
            // Two sections can read the same key.
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    /// Returns the content of the file that a key names, if it is set.
    pub(super) fn file(&mut self, key: Key) -> Option<String> {
        self.content(key, false)
    }

    /// The same for a private key.
    pub(super) fn key_file(&mut self, key: Key) -> Option<SecretString> {
        self.content(key, true).map(SecretString::from)
    }

    fn content(&mut self, key: Key, is_secret: bool) -> Option<String> {
        let path = self.value(key, "", |path| Ok(path.to_owned()));
        if !path.is_empty() {
            self.judge(Path::new(&path), is_secret);
        }
        let content = (!path.is_empty()).then(|| fs::read_to_string(&path));
        let content = content.map(|read| {
            read.map_err(|error| format!("names {path}, which cannot be read: {error}"))
        });
        self.checked(key.name, content.transpose())?
    }

    /// Returns a list of secrets: an array in TOML, or a text with commas or line ends. It can be in a file, too.
    pub(super) fn secrets(&mut self, key: Key) -> Vec<SecretString> {
        let secrets = self.secret(key);
        items(secrets.as_ref().map_or("", ExposeSecret::expose_secret))
            .map(SecretString::from)
            .collect()
    }

    /// Returns a secret from its key or from the file of the key `…_file`.
    pub(super) fn secret(&mut self, key: Key) -> Option<SecretString> {
        let name = key.name;
        let is_read = self.keys.iter().any(|known| known.name == name);
        let read = match (self.settings.get(name), self.settings.get(&file_key(name))) {
            _ if is_read => Ok(()),
            (Some(_), Some(file)) => Err(format!(
                "and {name}_file ({}) must not both be set",
                file.source
            )),
            (
                None,
                Some(Setting {
                    text: path, source, ..
                }),
            ) => {
                let file = PathBuf::from(path);
                let content =
                    fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"));
                // A URL can contain a password.
                let source = if path.contains("://") {
                    format!("{source} names a URL, not a file")
                } else {
                    format!("{path}, named by {source}")
                };
                let setting = Setting::new(content.as_deref().unwrap_or_default(), &source);
                let is_blank = setting.is_blank();
                self.settings.insert(name.to_owned(), setting);
                self.judge(&file, true);
                content.and_then(|_| {
                    if is_blank {
                        Err("is empty".to_owned())
                    } else {
                        Ok(())
                    }
                })
            }
            (_, None) => Ok(()),
        };
        self.declare(Key {
            is_secret: true,
            ..key
        });
        self.checked(name, read)?;
        let setting = &self.settings[name];
        (!setting.is_blank()).then(|| setting.text.trim().into())
    }

    /// Sets a key to the value that another key implies.
    pub(super) fn imply(&mut self, name: &str, value: &str, reason: &str) {
        self.settings
            .insert(name.to_owned(), Setting::new(value, reason));
    }

    /// Adds an error about the first key if a rule about several keys is violated. If one of them has an error already,
    /// or if values may be missing, the rule cannot be judged.
    pub(super) fn require(&mut self, satisfied: bool, names: &[&'static str], rule: &str) {
        debug_assert!(
            names
                .iter()
                .all(|name| self.keys.iter().any(|key| key.name == *name)),
            "{names:?}"
        );
        if !satisfied
            && !self.is_incomplete
            && !names.iter().any(|name| self.invalid.contains(name))
        {
            self.checked(names[0], Err::<(), _>(rule));
        }
    }

    /// Adds an error about a source whose values are missing.
    pub(super) fn add_incomplete(&mut self, error: String) {
        self.is_incomplete = true;
        self.errors.push(error);
    }

    /// Adds the error about a key, if there is one.
    pub(super) fn checked<T>(
        &mut self,
        name: &'static str,
        parsed: Result<T, impl Display>,
    ) -> Option<T> {
        parsed
            .map_err(|error| {
                let error = format!("{} {error}", self.label(name));
                // Two sections can read the same key.
                if !self.errors.contains(&error) {
                    self.errors.push(error);
                }
                self.invalid.insert(name);
            })
            .ok()
    }

    /// Returns the name of a key and the source of its value. If it has no value: the variable that can set it.
    pub(super) fn label(&self, name: &str) -> String {
        let Setting { text, source, .. } = &self.settings[name];
        let source = if source == DEFAULT && text.is_empty() {
            variable(name)
        } else {
            source.clone()
        };
        format!("{name} ({source})")
    }

    /// Returns each key with its value and the source of that, as a line of TOML. A secret is a comment that says
    /// whether it is set.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.keys.iter().map(
            |&Key {
                 name, is_secret, ..
             }| {
                let (setting, file_key) = (&self.settings[name], file_key(name));
                match self.settings.get(&file_key) {
                    Some(file) if is_secret => {
                        format!("{file_key} = {} # {}", literal(&file.text), file.source)
                    }
                    _ if is_secret && !setting.is_blank() => {
                        format!("#{name} = \"(set)\" # {}", setting.source)
                    }
                    _ => format!("{name} = {} # {}", literal(&setting.text), setting.source),
                }
            },
        );
        lines.collect()
    }

    /// Returns the value of every key that was read, by its name.
    pub(super) fn texts(&self) -> BTreeMap<&'static str, SecretString> {
        self.keys
            .iter()
            .map(|key| (key.name, self.settings[key.name].text.as_str().into()))
            .collect()
    }

    /// Returns what was read, or all errors. `None` is an error that was added.
    ///
    /// An unknown key is an error unless it is in a section that was not read: a command does not depend on the rest.
    pub(super) fn finish<T>(mut self, read: Option<T>) -> Result<T, ConfigError> {
        let known = Config::all_keys();
        let names: BTreeSet<_> = known.iter().flat_map(Key::names).collect();
        let is_read = |name: &str| {
            let section = |name: &str| name.split('.').next().map(str::to_owned);
            let is_in = |key: &Key| section(key.name) == section(name);
            self.keys.iter().any(is_in) || !known.iter().any(is_in)
        };
        let strange = self
            .settings
            .iter()
            .filter(|(name, _)| !names.contains(*name) && is_read(name));
        let mut errors: Vec<_> = strange
            .map(|(name, setting)| unknown(name, &setting.source, &known))
            .collect();
        errors.append(&mut self.errors);
        match read {
            Some(read) if errors.is_empty() => Ok(read),
            _ => Err(ConfigError(errors)),
        }
    }
}

/// Splits a text at commas and line ends into trimmed items. Empty items are dropped.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n'])
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// Returns a text as a value in TOML, without quotes if it is a number or a boolean.
pub(super) fn literal(text: &str) -> String {
    let is_number = text
        .parse()
        .is_ok_and(|number: f64| number.is_finite() && number.to_string() == text);
    if is_number || ["true", "false"].contains(&text) {
        return text.to_owned();
    }
    // The escapes of JSON are escapes of TOML, which requires one more.
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}
