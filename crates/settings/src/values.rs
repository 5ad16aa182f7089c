//! The values of the settings, and the errors about them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString};

use crate::{
    Schema, SettingsError,
    parsers::{optional, path},
    schema::{file_setting, section_of},
};

/// The source of a value that no source sets.
pub(crate) const DEFAULT: &str = "default";

/// What the sources set. An error about a value names its setting and its source.
#[derive(Debug)]
pub struct Values {
    pub(crate) schema: &'static Schema,
    /// By name, which may be unknown. Every known setting has an entry.
    pub(crate) entries: BTreeMap<String, Entry>,
    problems: BTreeSet<Problem>,
    warnings: BTreeSet<String>,
    /// Whether the values that are read are used: their files are opened, and the errors of their sections count.
    is_in_use: bool,
    used_sections: BTreeSet<String>,
    /// `false`: the file of the settings cannot be read, and what it sets is unknown.
    pub(crate) is_complete: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The text, or the items of an array with commas between them. It can be a secret.
    text: SecretString,
    /// As errors name it: the file and the line, the variable, the flag, or the setting that implies the value.
    pub(crate) source: String,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    setting: String,
    error: String,
}

impl Entry {
    pub(crate) fn text(&self) -> &str {
        self.text.expose_secret()
    }

    pub(crate) fn is_blank(&self) -> bool {
        items(self.text()).next().is_none()
    }
}

impl Values {
    pub(crate) fn new(schema: &'static Schema) -> Self {
        let mut values = Self {
            schema,
            entries: BTreeMap::new(),
            problems: BTreeSet::new(),
            warnings: BTreeSet::new(),
            is_in_use: false,
            used_sections: BTreeSet::new(),
            is_complete: true,
        };
        for setting in schema.settings() {
            values.set(setting.name, setting.default, DEFAULT);
        }
        values
    }

    /// Sets a setting. `source` is also the setting that implies the value.
    pub fn set(&mut self, name: &str, text: &str, source: &str) {
        let entry = Entry {
            text: text.into(),
            source: source.to_owned(),
        };
        self.entries.insert(name.to_owned(), entry);
    }

    /// Adds an error about a setting, or about all if the name is empty.
    pub(crate) fn reject(&mut self, setting: &str, error: String) {
        self.problems.insert(Problem {
            setting: setting.to_owned(),
            error,
        });
    }

    /// Reads what a command uses, with the files that it names.
    ///
    /// # Errors
    /// All errors about the sections of which a value was read, and those of every command.
    pub fn open<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<T, SettingsError> {
        self.is_in_use = true;
        let opened = read(self);
        self.is_in_use = false;
        let errors = self.errors(|section| self.used_sections.contains(section));
        match opened {
            Some(opened) if errors.is_empty() => Ok(opened),
            _ => Err(SettingsError(errors)),
        }
    }

    /// Returns the warnings about files that were opened, and the errors of the sections that were not used.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = self.warnings.iter().cloned().collect();
        for error in self.errors(|section| !self.used_sections.contains(section)) {
            warnings.push(format!("{error}; this command does not use it"));
        }
        warnings
    }

    /// Returns the errors of these sections. An unknown section can be that of any command.
    fn errors(&self, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let mut errors = BTreeSet::new();
        for problem in &self.problems {
            let section = section_of(&problem.setting);
            let is_unknown = !self.schema.has_section(section);
            if is_unknown || is_wanted(section) {
                errors.insert(problem.error.clone());
            }
        }
        errors
    }

    /// Returns the entry of a setting for its use.
    fn used(&mut self, name: &str) -> &Entry {
        if self.is_in_use {
            let section = section_of(name);
            self.used_sections.insert(section.to_owned());
        }
        &self.entries[name]
    }

    /// Parses a value. If it is invalid, adds an error and returns the default.
    ///
    /// # Panics
    /// If the setting is unknown, or its default is invalid.
    pub fn get<T>(&mut self, name: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let text = self.used(name).text();
        match parse(text.trim()) {
            Ok(value) => value,
            Err(expected) => {
                let error = format!("must be {expected}, not {text:?}");
                self.check::<T>(name, Err(error));
                let setting = self.schema.find(name);
                let setting = setting.expect("every entry has one");
                parse(setting.default).expect("the default is valid")
            }
        }
    }

    /// Returns the items of a list: an array in TOML, or a text with commas.
    pub fn items(&mut self, name: &str) -> Vec<String> {
        let text = self.used(name).text();
        items(text).map(str::to_owned).collect()
    }

    /// Returns the text of a setting that is not a secret. Its section does not count as used.
    pub fn text(&self, name: &str) -> &str {
        self.entries[name].text().trim()
    }

    /// Whether a setting has a value that is not blank. A secret has one if a file is named.
    pub fn is_set(&self, name: &str) -> bool {
        !self.entries[name].is_blank() || self.entries.contains_key(&file_setting(name))
    }

    /// Returns a checked value, or adds the error about its setting.
    pub fn check<T>(&mut self, name: &str, checked: Result<T, impl Display>) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(error) => {
                let error = self.labelled(name, error);
                self.reject(name, error);
                None
            }
        }
    }

    /// Adds an error about the first setting if a rule about several is violated. If one of them has an error already,
    /// or the file cannot be read, the rule cannot be judged.
    pub fn require(&mut self, is_satisfied: bool, names: &[&'static str], rule: &str) {
        if is_satisfied || !self.is_complete {
            return;
        }
        for problem in &self.problems {
            if names.contains(&problem.setting.as_str()) {
                return;
            }
        }
        let name = names[0];
        let error = self.labelled(name, rule);
        self.reject(name, error);
    }

    /// Adds a warning about a setting.
    pub fn warn(&mut self, name: &str, warning: &str) {
        let warning = self.labelled(name, warning);
        self.warnings.insert(warning);
    }

    /// Adds the warnings about a file that the configuration names.
    pub fn judge(&mut self, path: &Path, has_secrets: bool) {
        let warnings = (self.schema.judge)(path, has_secrets);
        self.warnings.extend(warnings);
    }

    /// Returns a secret, from the file that contains it if one is named. `None`: it is not set, there is an error, or
    /// its section is only checked.
    pub fn secret(&mut self, name: &str) -> Option<SecretString> {
        if !self.is_in_use {
            return None;
        }
        let file = self.entries.get(&file_setting(name)).cloned();
        let is_unread = self.used(name).source == DEFAULT;
        if let Some(file) = file
            && is_unread
        {
            self.read_secret(name, &file);
        }
        let entry = &self.entries[name];
        if entry.is_blank() {
            return None;
        }
        Some(entry.text().trim().into())
    }

    /// Reads a secret from its file, which becomes its source.
    fn read_secret(&mut self, name: &str, file: &Entry) {
        let path = file.text();
        // A URL can contain a password.
        let source = if path.contains("://") {
            format!("{} names a URL, not a file", file.source)
        } else {
            format!("{path}, named by {}", file.source)
        };
        self.set(name, "", &source);
        let content = self.read_file(Path::new(path), true);
        let content = content.map_err(|error| format!("cannot be read: {error}"));
        if let Some(content) = self.check(name, content) {
            self.set(name, &content, &source);
            if self.entries[name].is_blank() {
                self.check::<()>(name, Err("is empty"));
            }
        }
    }

    /// Returns the content of the file that a setting names. `None`: none is named, there is an error, or the section is
    /// only checked.
    pub fn file(&mut self, name: &'static str, has_secrets: bool) -> Option<String> {
        let path: PathBuf = self.get(name, optional(path))?;
        if !self.is_in_use {
            return None;
        }
        let content = self.read_file(&path, has_secrets);
        let content = content.map_err(|error| {
            let path = path.display();
            format!("names {path}, which cannot be read: {error}")
        });
        self.check(name, content)
    }

    fn read_file(&mut self, path: &Path, has_secrets: bool) -> io::Result<String> {
        self.judge(path, has_secrets);
        fs::read_to_string(path)
    }

    /// Returns the value of every setting by its name. That of a secret in a file that was opened is the content.
    pub fn texts(&self) -> BTreeMap<&'static str, SecretString> {
        let mut texts = BTreeMap::new();
        for setting in self.schema.settings() {
            let text = self.entries[setting.name].text().trim();
            texts.insert(setting.name, text.into());
        }
        texts
    }

    /// Returns a message about a setting: its name, the source of its value, and the message.
    fn labelled(&self, name: &str, message: impl Display) -> String {
        let entry = &self.entries[name];
        // Without a value, the variable that can set it.
        let source = if entry.source == DEFAULT && entry.text().is_empty() {
            self.schema.variable(name)
        } else {
            entry.source.clone()
        };
        format!("{name} ({source}) {message}")
    }
}

/// Splits a text at commas and line ends into trimmed items. Empty items are dropped.
pub fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n'])
        .map(str::trim)
        .filter(|item| !item.is_empty())
}
