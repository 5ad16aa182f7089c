use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use config::{Environment, FileFormat, Map, Source, Value, ValueKind};

use super::{
    Config,
    key::{PREFIX, variable},
};

/// The file that is read where none is named, if it exists.
pub const DEFAULT_FILE: &str = "animal-store.toml";

/// Where the configuration comes from; what comes later wins.
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
    /// What the process was given: this file (or [`DEFAULT_FILE`], where it exists), the environment, these flags.
    pub fn of_process(file: Option<PathBuf>, flags: Vec<(String, String)>) -> Self {
        let default = Path::new(DEFAULT_FILE);
        let file = file.or_else(|| default.exists().then(|| default.to_owned()));
        Self { file, environment: std::env::vars_os().collect(), flags }
    }

    /// Everything that is set, by the name of its key. What is wrong with the sources themselves is added to
    /// `problems`; no value is part of it.
    pub(super) fn collect(&self, problems: &mut Vec<String>) -> BTreeMap<String, Value> {
        let mut set = BTreeMap::new();
        if let Some(path) = &self.file {
            let origin = path.display().to_string();
            let table = read_file(path).map_err(|problem| problems.push(format!("{origin}: {problem}")));
            add(&mut set, table.unwrap_or_default(), problems, |name| format!("{origin}: {name}"));
        }
        let environment = environment(&self.environment, problems);
        add(&mut set, environment, problems, variable);
        let flags = self.flags.iter().cloned().map(|(name, value)| (name, Value::new(None, value))).collect();
        add(&mut set, flags, problems, |name| format!("--set {name}"));
        set
    }
}

fn add(
    set: &mut BTreeMap<String, Value>,
    source: Map<String, Value>,
    problems: &mut Vec<String>,
    origin: impl Fn(&str) -> String,
) {
    let mut leaves = Vec::new();
    flatten("", source, &mut leaves);
    leaves.sort_by(|(left, _), (right, _)| left.cmp(right));
    for (name, value) in leaves {
        if is_known(&name) {
            set.insert(name, value);
        } else {
            problems.push(format!("{} is unknown", origin(&name)));
        }
    }
}

fn is_known(name: &str) -> bool {
    Config::all_keys().any(|key| key.name == name || key.secret && key.file_name() == name)
}

fn flatten(prefix: &str, table: Map<String, Value>, leaves: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value.kind {
            ValueKind::Table(table) => flatten(&name, table, leaves),
            _ => leaves.push((name, value)),
        }
    }
}

/// The parser's own report would show the line, and a secret in it: this one names the place alone.
fn read_file(path: &Path) -> Result<Map<String, Value>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    text.parse::<toml::Table>().map_err(|error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..start].split(|&byte| byte == b'\n').count();
        format!("line {line} is not valid TOML")
    })?;
    config::File::from_str(&text, FileFormat::Toml).collect().map_err(|_| "is not valid TOML".to_owned())
}

fn environment(variables: &[(OsString, OsString)], problems: &mut Vec<String>) -> Map<String, Value> {
    let mut ours = Map::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(&format!("{PREFIX}_"))) else { continue };
        match value.to_str() {
            Some(value) => drop(ours.insert(name.to_owned(), value.to_owned())),
            None => problems.push(format!("{name} is not UTF-8")),
        }
    }
    Environment::with_prefix(PREFIX)
        .prefix_separator("_")
        .separator("__")
        .source(Some(ours))
        .collect()
        .unwrap_or_default()
}
