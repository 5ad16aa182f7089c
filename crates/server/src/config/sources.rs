use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use config::{Environment, Map, Source, Value, ValueKind};

use super::key::{Key, PREFIX, variable};

/// The configuration file that is read if it exists and no other is named.
pub const DEFAULT_FILE: &str = "animal-store.toml";

/// The sources of the configuration, in ascending order of precedence.
#[derive(Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Flags: names of keys and their values.
    pub flags: Vec<(String, String)>,
}

impl Sources {
    /// Returns the sources of this process: the file (or [`DEFAULT_FILE`], if it exists), the environment, the flags.
    pub(crate) fn from_process(file: Option<PathBuf>, flags: Vec<(String, String)>) -> Self {
        let default = Path::new(DEFAULT_FILE);
        let file = file.or_else(|| default.exists().then(|| default.to_owned()));
        Self { file, environment: std::env::vars_os().collect(), flags }
    }

    /// Returns every value that is set, by key. Adds an error for each unreadable source and unknown key; no error
    /// contains a value.
    pub(super) fn collect(&self, keys: &[&Key], errors: &mut Vec<String>) -> BTreeMap<String, Value> {
        let mut values = BTreeMap::new();
        let mut add = |source: Map<String, Value>, errors: &mut Vec<String>, origin: &dyn Fn(&str) -> String| {
            let mut leaves = BTreeMap::new();
            flatten("", source, &mut leaves);
            for (name, value) in leaves {
                if keys.iter().any(|key| key.name == name || key.secret && key.file_key() == name) {
                    values.insert(name, value);
                } else {
                    errors.push(format!("{} is unknown", origin(&name)));
                }
            }
        };
        if let Some(path) = &self.file {
            let path_name = path.display();
            let table = read_file(path).map_err(|error| errors.push(format!("{path_name}: {error}")));
            add(table.unwrap_or_default(), errors, &|name| format!("{path_name}: {name}"));
        }
        let environment = read_environment(&self.environment, errors);
        add(environment, errors, &variable);
        let flags = self.flags.iter().cloned().map(|(name, value)| (name, Value::new(None, value))).collect();
        add(flags, errors, &|name| format!("--set {name}"));
        values
    }
}

/// Joins the names of nested tables: `http.listen`.
fn flatten(prefix: &str, table: Map<String, Value>, leaves: &mut BTreeMap<String, Value>) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value.kind {
            ValueKind::Table(table) => flatten(&name, table, leaves),
            _ => drop(leaves.insert(name, value)),
        }
    }
}

/// Reads a TOML file. An error names the line without its text, which can be a secret.
fn read_file(path: &Path) -> Result<Map<String, Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..start].split(|&byte| byte == b'\n').count();
        format!("line {line} is not valid TOML")
    })?;
    Ok(from_table(table))
}

fn from_table(table: toml::Table) -> Map<String, Value> {
    table.into_iter().map(|(name, value)| (name, from_toml(value))).collect()
}

fn from_toml(value: toml::Value) -> Value {
    let kind = match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(boolean) => boolean.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => ValueKind::Array(values.into_iter().map(from_toml).collect()),
        toml::Value::Table(table) => ValueKind::Table(from_table(table)),
    };
    Value::new(None, kind)
}

fn read_environment(variables: &[(OsString, OsString)], errors: &mut Vec<String>) -> Map<String, Value> {
    let mut ours = Map::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(&format!("{PREFIX}_"))) else { continue };
        match value.to_str() {
            Some(value) => drop(ours.insert(name.to_owned(), value.to_owned())),
            None => errors.push(format!("{name} is not UTF-8")),
        }
    }
    let environment = Environment::with_prefix(PREFIX).prefix_separator("_").separator("__").source(Some(ours));
    environment.collect().unwrap_or_default()
}
