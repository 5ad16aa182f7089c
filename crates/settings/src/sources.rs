//! The sources of the settings, and how they are merged.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use crate::{Schema, Values};

/// The sources of a configuration, in ascending order of precedence.
#[derive(Debug, Default)]
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
        if let Some(path) = &sources.file
            && let Err(error) = add_file(&mut values, path)
        {
            values.refuse(format!("{}{error}", path.display()));
            values.is_complete = false;
        }
        for (variable, text) in &sources.environment {
            if let Some(name) = variable.to_str().and_then(|name| self.name_of(name)) {
                let source = variable.to_string_lossy();
                match text.to_str() {
                    Some(text) => values.set(name, text, &source),
                    None => values.refuse(format!("{source} is not UTF-8")),
                }
            }
        }
        for (name, text) in &sources.flags {
            if self.find(name).is_some_and(|setting| setting.is_secret) {
                let variable = self.variable(name);
                values.refuse(format!(
                    "{name} (--set) is a secret: every user of this machine could read it in the process list; set \
                     {variable} instead"
                ));
            } else {
                values.set(name.clone(), text, "--set");
            }
        }
        values.refuse_names();
        values
    }

    /// Returns the name of the setting that a variable sets, if it has our prefix. A variable that is not in upper case
    /// sets an unknown one.
    fn name_of(&self, variable: &str) -> Option<String> {
        let name = variable.strip_prefix(self.prefix)?.strip_prefix('_')?;
        let is_upper = name == name.to_uppercase() && !name.contains('.');
        Some(if is_upper {
            name.to_lowercase().replace("__", ".")
        } else {
            name.replace('.', "__")
        })
    }
}

/// Adds the values of a TOML file. An error has its place and its reason, without any text of the file, which can be a
/// secret.
fn add_file(values: &mut Values, path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!(": cannot be read: {error}"))?;
    let table = DeTable::parse(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let before = text.get(..offset).unwrap_or(&text);
        let column = 1 + before
            .chars()
            .rev()
            .take_while(|&character| character != '\n')
            .count();
        let line = line_of(&text, before.len());
        let reason = error.message();
        format!(", line {line}, column {column}: not valid TOML: {reason}")
    })?;
    let source = |offset| format!("{}, line {}", path.display(), line_of(&text, offset));
    add_table(values, "", table.get_ref(), &source);
    Ok(())
}

/// Returns the number of the line that contains the byte at this offset.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    1 + before.filter(|&byte| byte == b'\n').count()
}

/// Adds the values of a table and of the tables in it, with joined names (`http.listen`) and the source of each.
fn add_table(
    values: &mut Values,
    prefix: &str,
    table: &DeTable<'_>,
    source: &impl Fn(usize) -> String,
) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        let text = match value.get_ref() {
            DeValue::Table(table) => {
                add_table(values, &format!("{name}."), table, source);
                continue;
            }
            DeValue::Array(items) => {
                let items: Option<Vec<_>> =
                    items.iter().map(|item| scalar(item.get_ref())).collect();
                items.map(|items| items.join(","))
            }
            value => scalar(value),
        };
        let source = source(key.span().start);
        match text {
            Some(text) => values.set(name, &text, &source),
            None => values.reject(&name, format!("{name} ({source}) must be a list of texts")),
        }
    }
}

/// Returns the text of a scalar. Numbers are normalised: `0x3` is `3`.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|int| int.to_string()),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .ok()
            .map(|float: f64| float.to_string()),
        DeValue::Boolean(boolean) => Some(boolean.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
