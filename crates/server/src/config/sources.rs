use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Config,
    file::ConfigFile,
    values::{Key, Values, file_key},
};

/// The configuration file that is read if it exists and no other is named.
pub const DEFAULT_FILE: &str = "animal-store.toml";

/// Prefix of the environment variables of all keys.
const PREFIX: &str = "ANIMAL_STORE";

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

/// A value that a source sets.
pub(super) struct Setting {
    /// Name of a key, which may be unknown.
    pub(super) name: String,
    /// The text, or the items of an array with commas between them.
    pub(super) text: String,
    pub(super) is_array: bool,
    /// As errors name it: the file and the line, the variable, or the flag.
    pub(super) source: String,
}

impl Sources {
    /// Returns the sources of this process: the file (or [`DEFAULT_FILE`], if it exists), the environment, the flags.
    pub(crate) fn from_process(file: Option<PathBuf>, flags: Vec<(String, String)>, listen: Option<String>) -> Self {
        // A symbolic link to a missing file exists: reading it is an error.
        let absent = fs::symlink_metadata(DEFAULT_FILE).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let default = (!absent).then(|| Path::new(DEFAULT_FILE).to_owned());
        Self { file: file.or(default), environment: std::env::vars_os().collect(), flags, listen }
    }

    /// Merges the sources by precedence. Adds an error for each that cannot be read, for a key that is set by two
    /// variables, and for a secret in a flag. No error contains a value.
    pub(super) fn collect(&self) -> Values {
        let keys = Config::all_keys();
        let is_secret = |setting: &Setting| keys.iter().any(|key| key.secret && key.name == setting.name);
        let mut values = Values::default();
        let mut settings = self.file_settings(is_secret, &mut values);
        settings.extend(read_environment(&self.environment, &mut values.source_errors));
        let flags = self.flags.iter().map(|(name, value)| ("--set", name.as_str(), value));
        let listen = self.listen.iter().map(|address| ("--listen", "http.listen", address));
        for (flag, name, value) in flags.chain(listen) {
            let (name, text, source) = (name.to_owned(), value.clone(), flag.to_owned());
            let setting = Setting { name, text, is_array: false, source };
            if is_secret(&setting) {
                values.source_errors.push(format!(
                    "{} ({flag}) is a secret: every user of this machine could read it in the process list; set {} \
                     instead",
                    setting.name,
                    variable(&setting.name)
                ));
            } else {
                settings.push(setting);
            }
        }
        for setting in settings {
            let is_known = |key: &Key| key.name == setting.name || key.secret && file_key(key.name) == setting.name;
            if keys.iter().any(is_known) {
                values.settings.insert(setting.name.clone(), setting);
            } else {
                values.unknown.push(setting);
            }
        }
        values
    }

    fn file_settings(&self, is_secret: impl Fn(&Setting) -> bool, values: &mut Values) -> Vec<Setting> {
        let Some(path) = &self.file else { return Vec::new() };
        let ConfigFile { settings, errors, mode } = match ConfigFile::read(path) {
            Ok(file) => file,
            Err(error) => {
                values.source_errors.push(error);
                values.incomplete = true;
                return Vec::new();
            }
        };
        values.incomplete = !errors.is_empty();
        values.source_errors.extend(errors);
        if mode & OTHERS_MAY_WRITE != 0 && settings.iter().any(is_secret) {
            let name = path.display();
            values.warnings.push(format!(
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
        let Some(value) = value.to_str() else {
            errors.push(format!("{variable} is not UTF-8"));
            continue;
        };
        let (text, source) = (value.to_owned(), variable.to_owned());
        settings.push(Setting { name, text, is_array: false, source });
    }
    settings
}

/// Returns the environment variable of a key with this name, which may be unknown.
pub(crate) fn variable(name: &str) -> String {
    format!("{PREFIX}_{}", name.to_uppercase().replace('.', "__"))
}

/// Returns the error of an unknown key, with the nearest known key if one is near, spelt as in this source.
pub(super) fn unknown(Setting { name, source, .. }: &Setting, keys: &[Key]) -> String {
    let lower = name.trim().to_lowercase();
    let files = keys.iter().filter(|key| key.secret).map(|key| file_key(key.name));
    let known = keys.iter().map(|key| key.name.to_owned()).chain(files);
    let nearest = known.map(|known| (strsim::osa_distance(&lower, &known), known)).min();
    let near = nearest.filter(|&(edits, _)| edits <= MAX_EDITS && edits <= lower.len() / 3);
    let spelt = |known: String| if source.starts_with(PREFIX) { variable(&known) } else { known };
    let hint = near.map(|(_, known)| format!(": did you mean {}?", spelt(known)));
    format!("{name} ({source}) is unknown{}", hint.unwrap_or_default())
}
