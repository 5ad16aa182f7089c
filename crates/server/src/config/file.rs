use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use toml::de::{DeTable, DeValue};

use super::sources::Setting;

/// A configuration file.
pub(super) struct ConfigFile {
    pub(super) settings: Vec<Setting>,
    /// Errors about values that are no texts.
    pub(super) errors: Vec<String>,
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
        let settings = leaves.into_iter().map(|(key, offset, value)| {
            let source = format!("{name}, line {}", line(offset));
            let (text, is_array) = match value {
                DeValue::Array(values) => {
                    let texts: Option<Vec<_>> = values.iter().map(|value| scalar(value.get_ref())).collect();
                    (texts.map(|texts| texts.join(",")), true)
                }
                value => (scalar(value), false),
            };
            match text {
                Some(text) => Ok(Setting { name: key, text, is_array, source }),
                None => Err(format!("{key} ({source}) must be a list of texts")),
            }
        });
        let (settings, errors): (Vec<_>, Vec<_>) = settings.partition(Result::is_ok);
        let settings = settings.into_iter().flatten().collect();
        Ok(Self { settings, errors: errors.into_iter().filter_map(Result::err).collect(), mode })
    }
}

/// Collects the values of nested tables, with the joined names (`http.listen`) and the position of each.
fn flatten<'a>(prefix: &str, table: &'a DeTable<'a>, leaves: &mut Vec<(String, usize, &'a DeValue<'a>)>) {
    for (key, value) in table {
        let name = key.get_ref();
        let name = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        match value.get_ref() {
            DeValue::Table(table) => flatten(&name, table, leaves),
            value => leaves.push((name, key.span().start, value)),
        }
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
