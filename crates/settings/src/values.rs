//! The values of the settings, and the errors about them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use secrecy::{ExposeSecret, SecretString};

use crate::{
    Schema, SettingsError,
    parsers::{Parsed, can_be_secret},
    schema::{file_setting, section_of},
};

/// The source of a value that no source sets.
pub(crate) const DEFAULT: &str = "default";

/// What the sources set. An error about a value names its setting and its source.
#[derive(Debug, Clone)]
pub struct Values {
    pub(crate) schema: &'static Schema,
    /// By name, which may be unknown. Every known setting has an entry.
    pub(crate) entries: BTreeMap<String, Entry>,
    problems: BTreeSet<Problem>,
    pub(crate) warnings: BTreeSet<String>,
    /// Whether a command reads what it uses: the files are opened, and the errors of the sections count.
    pub(crate) is_opening: bool,
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

/// The names of the settings that have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Those that a running process takes over.
    pub reloaded: Vec<&'static str>,
    /// Those that need a restart.
    pub others: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
            is_opening: false,
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
    pub(crate) fn add_error(&mut self, setting: &str, error: String) {
        let setting = setting.to_owned();
        self.problems.insert(Problem { setting, error });
    }

    /// Adds an error about the value of a setting.
    pub(crate) fn reject(&mut self, name: &str, reason: impl Display) {
        let error = self.labelled(name, reason);
        self.add_error(name, error);
    }

    /// Reads what a command uses, with the files that it names.
    ///
    /// # Errors
    /// All errors about the sections of which a value was read, and those of every command.
    pub fn open<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<T, SettingsError> {
        self.is_opening = true;
        let opened = read(self);
        self.is_opening = false;
        let errors = self.errors(true);
        match opened {
            Some(opened) if errors.is_empty() => Ok(opened),
            _ => Err(SettingsError(errors)),
        }
    }

    /// Returns the warnings about files that were opened, and the errors of the sections that were not used.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(self.warnings.iter().cloned());
        for error in self.errors(false) {
            warnings.push(format!("{error}; this command does not use it"));
        }
        warnings
    }

    /// Returns the errors of the sections that are used, or of the others.
    fn errors(&self, of_used: bool) -> BTreeSet<String> {
        let mut errors = BTreeSet::new();
        for problem in &self.problems {
            if self.counts(section_of(&problem.setting)) == of_used {
                errors.insert(problem.error.clone());
            }
        }
        errors
    }

    /// Whether errors of this section count: a value of it was used. An unknown section can be that of any command.
    fn counts(&self, section: &str) -> bool {
        self.used_sections.contains(section) || !self.schema.has_section(section)
    }

    /// Marks the section of a setting as used if values are opened. Returns the entry.
    pub(crate) fn mark_and_get(&mut self, name: &str) -> &Entry {
        if self.is_opening {
            let section = section_of(name);
            self.used_sections.insert(section.to_owned());
        }
        &self.entries[name]
    }

    /// Parses a value. If it is invalid, adds an error and returns the default.
    ///
    /// # Panics
    /// If the setting is unknown, or its default is invalid.
    pub fn get<T>(&mut self, name: &str, parse: impl Fn(&str) -> Parsed<T>) -> T {
        let text = self.mark_and_get(name).text();
        match parse(text.trim()) {
            Ok(value) => value,
            Err(expected) => {
                let reason = if can_be_secret(text) {
                    format!("must be {expected}")
                } else {
                    format!("must be {expected}, not {text:?}")
                };
                self.reject(name, reason);
                let setting = self.schema.find(name);
                let setting = setting.expect("the setting exists");
                parse(setting.default).expect("the default is valid")
            }
        }
    }

    /// Parses the items of a list: an array in TOML, or a text with commas. `None` is an error.
    pub fn list<T, E: Display>(
        &mut self,
        name: &str,
        parse: impl Fn(&[String]) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.mark_and_get(name).text();
        let items: Vec<_> = items(text).map(str::to_owned).collect();
        let parsed = parse(&items);
        self.check(name, parsed)
    }

    /// Returns the text of a setting that is not a secret. Its section does not count as used.
    pub fn text(&self, name: &str) -> &str {
        self.entries[name].text().trim()
    }

    /// Whether a setting has a value that is not blank. A secret has one if a file is named.
    pub fn is_set(&self, name: &str) -> bool {
        !self.entries[name].is_blank() || self.file_of(name).is_some()
    }

    /// Returns the entry of the setting that names the file with a secret, if it is set.
    pub(crate) fn file_of(&self, secret: &str) -> Option<&Entry> {
        self.entries.get(&file_setting(secret))
    }

    /// Returns a checked value, or adds the error about its setting.
    pub fn check<T>(&mut self, name: &str, checked: Result<T, impl Display>) -> Option<T> {
        match checked {
            Ok(value) => Some(value),
            Err(error) => {
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
        self.reject(names[0], rule);
    }

    /// Adds a warning about a setting.
    pub fn warn(&mut self, name: &str, warning: &str) {
        let warning = self.labelled(name, warning);
        self.warnings.insert(warning);
    }

    /// Takes over the newer values of the settings that reload. Returns the settings whose values differ. The value of a
    /// secret in a file that was opened is the content.
    pub fn reload(&mut self, newer: &Self) -> Changes {
        let mut changes = Changes::default();
        for setting in self.schema.settings() {
            let name = setting.name;
            if self.text(name) == newer.text(name) {
                continue;
            }
            if setting.reloads {
                let entry = newer.entries[name].clone();
                self.entries.insert(name.to_owned(), entry);
                changes.reloaded.push(name);
            } else {
                changes.others.push(name);
            }
        }
        changes
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
