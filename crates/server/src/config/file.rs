use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use toml::de::{DeTable, DeValue};

use super::sources::{Setting, Value};

/// A configuration file.
pub(super) struct ConfigFile {
    pub(super) settings: Vec<Setting>,
    /// Permissions of the file.
    pub(super) mode: u32,
}

impl ConfigFile {
    /// Reads a TOML file. An error names the line without its text, which can be a secret.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let unreadable = |error: io::Error| format!("{name}: cannot be read: {error}");
        let file = fs::File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.mode();
        let text = io::read_to_string(file).map_err(unreadable)?;
        let line = |offset: usize| 1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count();
        let table = DeTable::parse(&text).map_err(|error| {
            let line = line(error.span().map_or(0, |span| span.start));
            format!("{name}, line {line}: not valid TOML")
        })?;
        let mut leaves = Vec::new();
        flatten("", table.get_ref(), &mut leaves);
        let settings = leaves.into_iter().map(|(key, offset, value)| Setting {
            name: key,
            value,
            source: format!("{name}, line {}", line(offset)),
        });
        Ok(Self { settings: settings.collect(), mode })
    }
}

/// Collects the values of nested tables, with the joined names (`http.listen`) and the position of each.
fn flatten(prefix: &str, table: &DeTable<'_>, leaves: &mut Vec<(String, usize, Value)>) {
    for (key, value) in table {
        let name = key.get_ref();
        let name = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        let value = match value.get_ref() {
            DeValue::Table(table) => {
                flatten(&name, table, leaves);
                continue;
            }
            DeValue::Array(values) => {
                let texts: Option<_> = values.iter().map(|value| scalar(value.get_ref())).collect();
                texts.map_or(Value::Nested, Value::List)
            }
            value => scalar(value).map_or(Value::Nested, Value::Text),
        };
        leaves.push((name, key.span().start, value));
    }
}

/// Returns the text of a scalar. Numbers are normalised: `0x3` is `3`.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|int| int.to_string())
        }
        DeValue::Float(number) => number.as_str().parse().ok().map(|float: f64| float.to_string()),
        DeValue::Boolean(boolean) => Some(boolean.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
