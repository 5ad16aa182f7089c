//! The sources of the settings, and how they are merged.

use std::{
    ffi::{OsStr, OsString},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use animal_store_small_files::read_text;
use toml::de::{DeArray, DeTable, DeValue};

use crate::{Schema, Values, values::DEFAULT};

/// The sources of a configuration, in ascending order of precedence.
#[derive(Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The flags: names of settings and their values.
    pub flags: Vec<(String, String)>,
}

impl Schema {
    /// Merges the sources by precedence, and finds the settings that are unknown. No value is checked.
    pub fn read(&'static self, sources: &Sources) -> Values {
        let mut values = Values::new(self);
        if let Some(path) = &sources.file {
            add_file(&mut values, path);
        }
        for (variable, text) in &sources.environment {
            add_variable(&mut values, variable, text);
        }
        for (name, text) in &sources.flags {
            add_flag(&mut values, name, text);
        }
        reject_unknown(&mut values);
        reject_ambiguous(&mut values);
        values
    }

    /// Returns the name of the setting that a variable sets, if it has our prefix. A variable that is spelt otherwise
    /// sets an unknown one.
    fn name_of(&self, variable: &str) -> Option<String> {
        let text = variable.strip_prefix(self.prefix)?;
        let text = text.strip_prefix('_')?;
        let name = text.to_lowercase().replace("__", ".");
        if self.variable(&name) == variable {
            Some(name)
        } else {
            Some(text.replace('.', "__"))
        }
    }
}

fn add_file(values: &mut Values, path: &Path) {
    values.judge(path, false);
    let added = match read_text(path) {
        Ok(text) => File { path, text }.add_to(values),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let advice =
                "run the command as the user of the service, or name another file with --config";
            Err(format!(": cannot be read: {error}: {advice}"))
        }
        Err(error) => Err(format!(": cannot be read: {error}")),
    };
    if let Err(error) = added {
        let path = path.display();
        values.add_error("", format!("{path}{error}"));
        values.is_complete = false;
    }
}

/// Adds the value of a variable, if it has our prefix.
fn add_variable(values: &mut Values, variable: &OsStr, text: &OsStr) {
    let Some(variable) = variable.to_str() else {
        return;
    };
    let Some(name) = values.schema.name_of(variable) else {
        return;
    };
    match text.to_str() {
        Some(text) => values.set(&name, text, variable),
        None => values.add_error("", format!("{variable} is not UTF-8")),
    }
}

fn add_flag(values: &mut Values, name: &str, text: &str) {
    let setting = values.schema.find(name);
    if setting.is_none_or(|setting| !setting.is_secret) {
        return values.set(name, text, "--set");
    }
    let variable = values.schema.variable(name);
    let error = format!(
        "{name} (--set) is a secret: every user of this machine could read it in the process list; set {variable} \
         instead"
    );
    values.add_error("", error);
}

/// Rejects each name that is unknown.
fn reject_unknown(values: &mut Values) {
    let schema = values.schema;
    let known = schema.names();
    for (name, entry) in values.entries.clone() {
        if !known.contains(&name) {
            let reason = schema.unknown(&name, &entry.source);
            values.reject(&name, reason);
        }
    }
}

/// Rejects each secret that is set by itself and by a file.
fn reject_ambiguous(values: &mut Values) {
    for setting in values.schema.settings() {
        let name = setting.name;
        let is_set = values.entries[name].source != DEFAULT;
        if is_set && let Some(file) = values.file_of(name) {
            let file = &file.source;
            let reason = format!("and {name}_file ({file}) must not both be set");
            values.reject(name, reason);
        }
    }
}

/// A TOML file. No error has any text of it, which can be a secret.
struct File<'a> {
    path: &'a Path,
    text: String,
}

impl File<'_> {
    fn add_to(&self, values: &mut Values) -> Result<(), String> {
        match DeTable::parse(&self.text) {
            Ok(table) => {
                self.add_table(values, "", table.get_ref());
                Ok(())
            }
            Err(error) => Err(describe(&error)),
        }
    }

    /// Adds the values of a table and of the tables in it, with joined names (`http.listen`) and the line of each.
    fn add_table(&self, values: &mut Values, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = format!("{prefix}{}", key.get_ref());
            let source = self.source(key.span().start);
            let text = match value.get_ref() {
                DeValue::Table(table) => {
                    self.add_table(values, &format!("{name}."), table);
                    continue;
                }
                DeValue::Array(items) => list(items),
                value => scalar(value),
            };
            if let Some(text) = text {
                values.set(&name, &text, &source);
            } else {
                let error = format!("{name} ({source}) must be a list of texts");
                values.add_error(&name, error);
            }
        }
    }

    /// Returns the file with the line of the byte at this offset.
    fn source(&self, offset: usize) -> String {
        let before = &self.text[..offset];
        let line = 1 + before.matches('\n').count();
        let path = self.path.display();
        format!("{path}, line {line}")
    }
}

/// Returns the place and the reason of an error. The other lines of its text quote the file.
fn describe(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.lines().next().unwrap_or_default();
    let reason = error.message();
    format!(": {place}: {reason}")
}

fn list(items: &DeArray<'_>) -> Option<String> {
    let mut texts = Vec::new();
    for item in items {
        texts.push(scalar(item.get_ref())?);
    }
    Some(texts.join(","))
}

/// Returns the text of a scalar. Numbers are normalised: `0x3` is `3`. An integer that is too large stays as it is.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let integer = i64::from_str_radix(number.as_str(), number.radix());
            Some(integer.map_or_else(|_| number.to_string(), |integer| integer.to_string()))
        }
        DeValue::Float(number) => {
            let float: f64 = number.as_str().parse().ok()?;
            Some(float.to_string())
        }
        DeValue::Boolean(boolean) => Some(boolean.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
