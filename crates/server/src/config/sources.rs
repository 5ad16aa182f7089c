use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    file::ConfigFile,
    key::{Key, PREFIX},
    setting::{Setting, Source, Value},
};

/// The configuration file that is read if it exists and no other is named.
pub const DEFAULT_FILE: &str = "animal-store.toml";

/// Permission of the group and of others to write a file.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// Maximum number of edits between an unknown key and the key that its error suggests.
const MAX_EDITS: usize = 3;

/// The sources of the configuration, in ascending order of precedence.
#[derive(Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The flags `--set`: names of keys and their values.
    pub flags: Vec<(String, String)>,
    /// The flag `--listen`: the value of `http.listen`.
    pub listen: Option<String>,
}

/// The settings of all sources, merged by precedence.
#[derive(Default)]
pub(super) struct MergedSettings {
    /// The value that wins, by key.
    pub(super) settings: BTreeMap<String, Setting>,
    pub(super) errors: Vec<String>,
    pub(super) warnings: Vec<String>,
    /// Whether the file could not be read, so that values may be missing.
    pub(super) incomplete: bool,
}

impl Sources {
    /// Returns the sources of this process: the file (or [`DEFAULT_FILE`], if it exists), the environment, the flags.
    pub(crate) fn from_process(file: Option<PathBuf>, flags: Vec<(String, String)>, listen: Option<String>) -> Self {
        // A symbolic link to a missing file exists: reading it is an error.
        let absent = fs::symlink_metadata(DEFAULT_FILE).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let default = (!absent).then(|| Path::new(DEFAULT_FILE).to_owned());
        Self { file: file.or(default), environment: std::env::vars_os().collect(), flags, listen }
    }

    /// Returns every value that is set. Adds an error for each unreadable source, and for each key that is unknown or
    /// set by two variables. No error contains a value.
    pub(super) fn collect(&self, keys: &[&Key]) -> MergedSettings {
        let mut merged = MergedSettings::default();
        let mut settings = self.file_settings(keys, &mut merged);
        settings.extend(read_environment(&self.environment, &mut merged.errors));
        let flags = self.flags.iter().map(|(name, value)| ("--set", name.as_str(), value));
        let listen = self.listen.iter().map(|address| ("--listen", "http.listen", address));
        settings.extend(flags.chain(listen).map(|(flag, name, value)| Setting {
            name: name.to_owned(),
            value: Value::Text(value.clone()),
            source: Source::Flag(flag),
        }));
        let mut known: Vec<String> = keys.iter().map(|key| key.name.to_owned()).collect();
        known.extend(keys.iter().filter(|key| key.secret).map(|key| key.file_key()));
        for setting in settings {
            if known.contains(&setting.name) {
                merged.settings.insert(setting.name.clone(), setting);
            } else {
                merged.errors.push(unknown(&setting, &known));
            }
        }
        merged
    }

    fn file_settings(&self, keys: &[&Key], merged: &mut MergedSettings) -> Vec<Setting> {
        let Some(path) = &self.file else { return Vec::new() };
        let ConfigFile { settings, mode } = match ConfigFile::read(path) {
            Ok(file) => file,
            Err(error) => {
                merged.errors.push(error);
                merged.incomplete = true;
                return Vec::new();
            }
        };
        let is_secret = |setting: &Setting| keys.iter().any(|key| key.secret && key.name == setting.name);
        if mode & OTHERS_MAY_WRITE != 0 && settings.iter().any(is_secret) {
            let name = path.display();
            merged.warnings.push(format!(
                "{name} contains secrets, and other users can write to it (mode {:03o}): run chmod go-w {name}",
                mode & 0o777
            ));
        }
        settings
    }
}

/// Returns the settings of the variables with our prefix, in any case after it.
fn read_environment(environment: &[(OsString, OsString)], errors: &mut Vec<String>) -> Vec<Setting> {
    let ours = environment.iter().filter_map(|(variable, value)| {
        let variable = variable.to_str()?;
        Some((variable, variable.strip_prefix(PREFIX)?.strip_prefix('_')?, value))
    });
    let mut ours: Vec<_> = ours.collect();
    ours.sort_unstable(); // the environment has no order
    let mut variables = BTreeMap::new();
    let mut settings = Vec::new();
    for (variable, suffix, value) in ours {
        let name = suffix.to_lowercase().replace("__", ".");
        if let Some(other) = variables.insert(name.clone(), variable) {
            errors.push(format!("{name} ({other} and {variable}) must be set by one variable, not by two"));
        }
        match value.to_str() {
            Some(value) => settings.push(Setting {
                name,
                value: Value::Text(value.to_owned()),
                source: Source::Variable(variable.to_owned()),
            }),
            None => errors.push(format!("{variable} is not UTF-8")),
        }
    }
    settings
}

/// Returns the error of an unknown key, with the nearest known key if one is near.
fn unknown(Setting { name, source, .. }: &Setting, known: &[String]) -> String {
    let lower = name.trim().to_lowercase();
    let nearest = known.iter().map(|known| (strsim::osa_distance(&lower, known), known)).min();
    let near = nearest.filter(|&(edits, _)| edits <= MAX_EDITS && edits <= lower.len() / 3);
    let hint = near.map(|(_, known)| format!(": did you mean {}?", source.spelling(known)));
    format!("{name} ({source}) is unknown{}", hint.unwrap_or_default())
}
