//! The values of the settings, and the errors about them.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug, Display, Formatter},
    fs,
    path::Path,
};

use secrecy::SecretString;

use crate::{
    Schema, Setting, SettingsError,
    schema::{file_setting, section_of},
};

/// The source of a value that no source sets.
const DEFAULT: &str = "default";

/// What the sources set. An error about a value names its setting and its source.
#[derive(Debug)]
pub struct Values {
    pub(crate) schema: &'static Schema,
    /// By name, which may be unknown. Every known setting has an entry.
    pub(crate) entries: BTreeMap<String, Entry>,
    /// Errors about settings.
    problems: Vec<Problem>,
    /// Errors that every command reports.
    refused: SettingsError,
    /// `false`: the file cannot be read, and what it sets is unknown.
    pub(crate) is_complete: bool,
}

pub(crate) struct Entry {
    /// The text, or the items of an array with commas between them.
    pub(crate) text: String,
    /// As errors name it: the file and the line, the variable, the flag, or the setting that implies the value.
    pub(crate) source: String,
}

#[derive(Debug)]
struct Problem {
    setting: String,
    error: String,
}

/// The text can be a secret.
impl Debug for Entry {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)
    }
}

impl Entry {
    fn new(text: &str, source: &str) -> Self {
        Self {
            text: text.to_owned(),
            source: source.to_owned(),
        }
    }
}

impl Values {
    pub(crate) fn new(schema: &'static Schema) -> Self {
        let default = |setting: &'static Setting| {
            let entry = Entry::new(setting.default, DEFAULT);
            (setting.name.to_owned(), entry)
        };
        Self {
            schema,
            entries: schema.settings().map(default).collect(),
            problems: Vec::new(),
            refused: SettingsError::default(),
            is_complete: true,
        }
    }

    pub(crate) fn set(&mut self, name: String, text: &str, source: &str) {
        self.entries.insert(name, Entry::new(text, source));
    }

    /// Adds an error that every command reports.
    pub(crate) fn refuse(&mut self, error: String) {
        self.refused.add(error);
    }

    /// Adds an error about a setting.
    pub(crate) fn reject(&mut self, setting: &str, error: String) {
        self.problems.push(Problem {
            setting: setting.to_owned(),
            error,
        });
    }

    /// Adds an error for each name that is unknown, and for each secret that is set twice. An unknown section can be
    /// that of any command.
    pub(crate) fn refuse_names(&mut self) {
        let schema = self.schema;
        let mut unknown = Vec::new();
        for (name, entry) in &self.entries {
            if !schema.knows(name) {
                unknown.push((name.clone(), schema.unknown(name, &entry.source)));
            }
        }
        for (name, error) in unknown {
            if schema.has_section_of(&name) {
                self.reject(&name, error);
            } else {
                self.refuse(error);
            }
        }
        for setting in schema.settings().filter(|setting| setting.is_secret) {
            let file = self.entries.get(&file_setting(setting.name));
            let own = &self.entries[setting.name].source;
            if let Some(file) = file.filter(|_| own != DEFAULT) {
                let name = setting.name;
                let error = format!(
                    "{name} ({own}) and {name}_file ({}) must not both be set",
                    file.source
                );
                self.reject(name, error);
            }
        }
    }

    /// Parses a value. If it is invalid, adds an error and returns the default.
    ///
    /// # Panics
    /// If the setting is unknown, or its default is invalid.
    pub fn get<T>(&mut self, name: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let text = &self.entries[name].text;
        let parsed =
            parse(text.trim()).map_err(|expected| format!("must be {expected}, not {text:?}"));
        self.check(name, parsed).unwrap_or_else(|| {
            let setting = self.schema.find(name).expect("every entry has one");
            parse(setting.default).expect("the default is valid")
        })
    }

    /// Returns the items of a list: an array in TOML, or a text with commas.
    pub fn items(&self, name: &str) -> Vec<String> {
        items(&self.entries[name].text).map(str::to_owned).collect()
    }

    /// Returns the text of a setting that is not a secret.
    pub fn text(&self, name: &str) -> &str {
        self.entries[name].text.trim()
    }

    /// Whether a setting has a value that is not blank. A secret has one if a file is named.
    pub fn is_set(&self, name: &str) -> bool {
        let is_blank = items(&self.entries[name].text).next().is_none();
        !is_blank || self.entries.contains_key(&file_setting(name))
    }

    /// Sets a setting to the value that another setting implies.
    pub fn imply(&mut self, name: &'static str, value: &str, reason: &str) {
        self.set(name.to_owned(), value, reason);
    }

    /// Returns a checked value, or adds the error about its setting.
    pub fn check<T>(&mut self, name: &str, checked: Result<T, impl Display>) -> Option<T> {
        checked
            .map_err(|error| self.reject(name, self.error(name, error)))
            .ok()
    }

    /// Adds an error about the first setting if a rule about several is violated. If one of them has an error already,
    /// or the file cannot be read, the rule cannot be judged.
    pub fn require(&mut self, is_satisfied: bool, names: &[&'static str], rule: &str) {
        let is_judged = self
            .problems
            .iter()
            .all(|problem| !names.contains(&problem.setting.as_str()));
        if !is_satisfied && is_judged && self.is_complete {
            self.reject(names[0], self.error(names[0], rule));
        }
    }

    /// Returns the errors of all sections.
    pub fn errors(&self) -> SettingsError {
        let mut errors = self.refused.clone();
        for problem in &self.problems {
            errors.add(problem.error.clone());
        }
        errors
    }

    /// Returns a section, unless it has errors.
    ///
    /// # Errors
    /// The errors about the settings of the section, and those that every command reports.
    pub fn section<T>(&self, section: &str, value: T) -> Result<T, SettingsError> {
        let mut errors = self.refused.clone();
        for problem in &self.problems {
            if section_of(&problem.setting) == section {
                errors.add(problem.error.clone());
            }
        }
        if errors.is_empty() {
            Ok(value)
        } else {
            Err(errors)
        }
    }

    /// Returns the file that contains a secret, if one is named.
    pub fn secret_file(&self, name: &str) -> Option<&Path> {
        let file = self.entries.get(&file_setting(name))?;
        Some(Path::new(&file.text))
    }

    /// Returns a secret, and reads the file that contains it. `None`: it is not set.
    ///
    /// # Errors
    /// If the file cannot be read, or is empty.
    pub fn secret(&self, name: &str) -> Result<Option<SecretString>, String> {
        let text = match self.secret_file(name) {
            None => self.entries[name].text.clone(),
            Some(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| self.error(name, format!("cannot be read: {error}")))?;
                if items(&text).next().is_none() {
                    return Err(self.error(name, "is empty"));
                }
                text
            }
        };
        let is_blank = items(&text).next().is_none();
        Ok((!is_blank).then(|| text.trim().into()))
    }

    /// Returns the error about a setting: its name, the source of its value, and the reason.
    pub fn error(&self, name: &str, reason: impl Display) -> String {
        format!("{} {reason}", self.label(name))
    }

    /// Returns the name of a setting and the source of its value. If it has no value: the variable that can set it.
    fn label(&self, name: &str) -> String {
        let Entry { text, source } = &self.entries[name];
        let source = match self.entries.get(&file_setting(name)) {
            // A URL can contain a password.
            Some(file) if file.text.contains("://") => {
                format!("{} names a URL, not a file", file.source)
            }
            Some(file) => format!("{}, named by {}", file.text, file.source),
            None if source == DEFAULT && text.is_empty() => self.schema.variable(name),
            None => source.clone(),
        };
        format!("{name} ({source})")
    }
}

/// Splits a text at commas and line ends into trimmed items. Empty items are dropped.
pub fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', '\n'])
        .map(str::trim)
        .filter(|item| !item.is_empty())
}
