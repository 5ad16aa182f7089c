use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use toml::de::{DeTable, DeValue};

use super::{
    Config,
    declaration::Key,
    values::{Setting, Values},
};

/// Prefix of the environment variables of all keys.
const PREFIX: &str = "ANIMAL_STORE";

/// Maximum number of edits between an unknown key and the key that its error suggests.
const MAX_EDITS: usize = 3;

/// The sources of the configuration, in ascending order of precedence.
#[derive(Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The flags: names of keys and their values.
    pub flags: Vec<(String, String)>,
}

impl Sources {
    /// Merges the sources by precedence. Adds an error for each that cannot be read, and for a secret in a flag. No
    /// error contains a value.
    pub(super) fn collect(&self) -> Values {
        let keys = Config::all_keys();
        let is_secret = |name: &str| keys.iter().any(|key| key.is_secret && key.name == name);
        let mut values = Values::default();
        if let Some(path) = &self.file {
            if let Err(error) = read_file(path, &mut values) {
                values.add_incomplete(format!("{}{error}", path.display()));
            }
            values.judge(path, false);
        }
        read_environment(&self.environment, &mut values);
        for (name, text) in &self.flags {
            if is_secret(name) {
                let variable = variable(name);
                values.errors.push(format!(
                    "{name} (--set) is a secret: every user of this machine could read it in the process list; set \
                     {variable} instead"
                ));
            } else {
                values
                    .settings
                    .insert(name.to_owned(), Setting::new(text, "--set"));
            }
        }
        values
    }
}

/// Adds the values of a TOML file. An error has its place and its reason, without any text of the file, which can be a
/// secret.
fn read_file(path: &Path, values: &mut Values) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!(": cannot be read: {error}"))?;
    let line = |offset: usize| {
        1 + text
            .bytes()
            .take(offset)
            .filter(|&byte| byte == b'\n')
            .count()
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let before = text
            .get(..error.span().map_or(0, |span| span.start))
            .unwrap_or(&text);
        let column = 1 + before
            .chars()
            .rev()
            .take_while(|&character| character != '\n')
            .count();
        format!(
            ", line {}, column {column}: not valid TOML: {}",
            line(before.len()),
            error.message()
        )
    })?;
    let source = |offset| format!("{}, line {}", path.display(), line(offset));
    add_table("", table.get_ref(), &source, values);
    Ok(())
}

/// Adds the values of a table and of the tables in it, with joined names (`http.listen`) and the source of each.
fn add_table(
    prefix: &str,
    table: &DeTable<'_>,
    source: &impl Fn(usize) -> String,
    values: &mut Values,
) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        let text = match value.get_ref() {
            DeValue::Table(table) => {
                add_table(&format!("{name}."), table, source, values);
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
            Some(text) => _ = values.settings.insert(name, Setting { text, source }),
            None => values.add_incomplete(format!("{name} ({source}) must be a list of texts")),
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

/// Adds the values of the variables with our prefix. One that is not in upper case is that of no key.
fn read_environment(environment: &[(OsString, OsString)], values: &mut Values) {
    for (variable, text) in environment {
        let Some(variable) = variable.to_str() else {
            continue;
        };
        let Some(suffix) = variable
            .strip_prefix(PREFIX)
            .and_then(|suffix| suffix.strip_prefix('_'))
        else {
            continue;
        };
        let is_upper = suffix == suffix.to_uppercase() && !suffix.contains('.');
        let name = if is_upper {
            suffix.to_lowercase().replace("__", ".")
        } else {
            suffix.replace('.', "__")
        };
        match text.to_str() {
            Some(text) => _ = values.settings.insert(name, Setting::new(text, variable)),
            None => values.errors.push(format!("{variable} is not UTF-8")),
        }
    }
}

/// Returns the environment variable of a key with this name, which may be unknown.
pub(super) fn variable(name: &str) -> String {
    format!("{PREFIX}_{}", name.to_uppercase().replace('.', "__"))
}

/// Returns the error of an unknown key, with the nearest known key if one is near, spelt as in this source.
pub(super) fn unknown(name: &str, source: &str, known: &[Key]) -> String {
    let lower = name.trim().to_lowercase();
    let names = known.iter().flat_map(Key::names);
    let nearest = names
        .map(|known| (strsim::osa_distance(&lower, &known), known))
        .min();
    let near = nearest.filter(|&(edits, _)| edits <= MAX_EDITS && edits <= lower.len() / 3);
    let spelt = |known: String| {
        if source.starts_with(PREFIX) {
            variable(&known)
        } else {
            known
        }
    };
    let hint = near.map(|(_, known)| format!(": did you mean {}?", spelt(known)));
    format!("{name} ({source}) is unknown{}", hint.unwrap_or_default())
}
