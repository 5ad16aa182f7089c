//! The sources of the settings, and how they are merged.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use toml::de::{DeArray, DeTable, DeValue};

use crate::{Schema, Values, schema::file_setting, values::DEFAULT};

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
        if let Some(path) = &sources.file {
            values.judge(path, false);
            if let Err(error) = add_file(&mut values, path) {
                let name = path.display();
                values.reject("", format!("{name}{error}"));
                values.is_complete = false;
            }
        }
        for (variable, text) in &sources.environment {
            let name = variable.to_str().and_then(|name| self.name_of(name));
            if let Some(name) = name {
                add_variable(&mut values, &name, variable, text);
            }
        }
        for (name, text) in &sources.flags {
            add_flag(&mut values, name, text);
        }
        reject_unknown(&mut values);
        reject_ambiguous(&mut values);
        values
    }

    /// Returns the name of the setting that a variable sets, if it has our prefix. A variable that is not in upper case
    /// sets an unknown one.
    fn name_of(&self, variable: &str) -> Option<String> {
        let name = variable.strip_prefix(self.prefix)?;
        let name = name.strip_prefix('_')?;
        let is_upper = name == name.to_uppercase() && !name.contains('.');
        if is_upper {
            let lower = name.to_lowercase();
            Some(lower.replace("__", "."))
        } else {
            Some(name.replace('.', "__"))
        }
    }
}

fn add_variable(values: &mut Values, name: &str, variable: &OsStr, text: &OsStr) {
    let source = variable.to_string_lossy();
    match text.to_str() {
        Some(text) => values.set(name, text, &source),
        None => values.reject("", format!("{source} is not UTF-8")),
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
    values.reject("", error);
}

/// Adds an error for each name that is unknown.
fn reject_unknown(values: &mut Values) {
    let schema = values.schema;
    for (name, entry) in values.entries.clone() {
        if !schema.knows(&name) {
            let error = schema.unknown(&name, &entry.source);
            values.reject(&name, error);
        }
    }
}

/// Adds an error for each secret that is set by itself and by a file.
fn reject_ambiguous(values: &mut Values) {
    for setting in values.schema.settings() {
        let name = setting.name;
        let own = &values.entries[name].source;
        if let Some(file) = values.entries.get(&file_setting(name))
            && own != DEFAULT
        {
            let file = &file.source;
            let error = format!("{name} ({own}) and {name}_file ({file}) must not both be set");
            values.reject(name, error);
        }
    }
}

/// Adds the values of a TOML file. An error has its place and its reason, without any text of the file, which can be a
/// secret.
fn add_file(values: &mut Values, path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!(": cannot be read: {error}"))?;
    let table = DeTable::parse(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let line = line_of(&text, offset);
        let column = column_of(&text, offset);
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

/// Returns the number of the character at this offset in its line.
fn column_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    1 + line.chars().count()
}

/// Adds the values of a table and of the tables in it, with joined names (`http.listen`) and the source of each.
fn add_table(
    values: &mut Values,
    prefix: &str,
    table: &DeTable<'_>,
    source_of: &impl Fn(usize) -> String,
) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        let source = source_of(key.span().start);
        let text = match value.get_ref() {
            DeValue::Table(table) => {
                add_table(values, &format!("{name}."), table, source_of);
                continue;
            }
            DeValue::Array(items) => list(items),
            value => scalar(value),
        };
        if let Some(text) = text {
            values.set(&name, &text, &source);
        } else {
            let error = format!("{name} ({source}) must be a list of texts");
            values.reject(&name, error);
        }
    }
}

fn list(items: &DeArray<'_>) -> Option<String> {
    let mut texts = Vec::new();
    for item in items {
        texts.push(scalar(item.get_ref())?);
    }
    Some(texts.join(","))
}

/// Returns the text of a scalar. Numbers are normalised: `0x3` is `3`.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let integer = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(integer.to_string())
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
