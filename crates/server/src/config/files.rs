//! The files that a configuration names. They are opened when a command uses their section.

use std::{collections::BTreeMap, fmt::Display, fs, mem, path::Path};

use animal_store_adapter_kit::{Believed, object_to_readers};
use animal_store_settings::{Setting, SettingsError, Values};
use secrecy::SecretString;

use super::SCHEMA;

/// Opens files, each secret once, and collects what is wrong with them.
pub(super) struct Files {
    pub(super) values: Values,
    /// Secrets that were opened. `None`: not set.
    secrets: BTreeMap<&'static str, Option<SecretString>>,
    errors: SettingsError,
    pub(super) warnings: Vec<String>,
}

impl Files {
    pub(super) fn new(values: Values) -> Self {
        Self {
            values,
            secrets: BTreeMap::new(),
            errors: SettingsError::default(),
            warnings: Vec::new(),
        }
    }

    /// Adds warnings about the other users who can change a file that the configuration names, or read its secrets.
    pub(super) fn judge(&mut self, path: &Path, has_secrets: bool) {
        let believed = Believed::this_process().and_owner_of_folder(path);
        let objections = [
            believed.object(path),
            object_to_readers(path).filter(|_| has_secrets),
        ];
        for objection in objections.into_iter().flatten() {
            self.warnings.push(objection.to_string());
        }
    }

    /// Returns a secret, from a file if one is named.
    pub(super) fn secret(&mut self, name: &'static str) -> Option<SecretString> {
        if let Some(secret) = self.secrets.get(name) {
            return secret.clone();
        }
        let secret = self.values.secret(name);
        if let Some(file) = self.values.secret_file(name).map(Path::to_owned) {
            self.judge(&file, true);
        }
        let secret = self.check_error(secret).flatten();
        self.secrets.insert(name, secret.clone());
        secret
    }

    /// Returns the content of the file that a setting names, if it is set.
    pub(super) fn read(
        &mut self,
        name: &str,
        path: Option<&Path>,
        has_secrets: bool,
    ) -> Option<String> {
        let path = path?;
        self.judge(path, has_secrets);
        let content = fs::read_to_string(path);
        let content = content.map_err(|error| {
            let path = path.display();
            format!("names {path}, which cannot be read: {error}")
        });
        self.check(name, content)
    }

    /// Adds a warning about the file that a setting names.
    pub(super) fn warn(&mut self, name: &str, warning: &str) {
        self.warnings.push(self.values.error(name, warning));
    }

    /// Returns what was read from a file, or adds the error about the setting that names it.
    pub(super) fn check<T>(&mut self, name: &str, read: Result<T, impl Display>) -> Option<T> {
        let read = read.map_err(|error| self.values.error(name, error));
        self.check_error(read)
    }

    fn check_error<T>(&mut self, read: Result<T, String>) -> Option<T> {
        read.map_err(|error| self.errors.add(error)).ok()
    }

    /// Returns the value of every setting by its name. For a secret in a file, the content of the file.
    pub(super) fn texts(&self) -> BTreeMap<&'static str, SecretString> {
        let mut texts = BTreeMap::new();
        for Setting { name, .. } in SCHEMA.settings() {
            let text = match self.secrets.get(name) {
                Some(secret) => secret.clone().unwrap_or_default(),
                None => self.values.text(name).into(),
            };
            texts.insert(*name, text);
        }
        texts
    }

    /// Returns what was opened, or all errors. `None` is an error that was added.
    pub(super) fn finish<T>(&mut self, opened: Option<T>) -> Result<T, SettingsError> {
        let errors = mem::take(&mut self.errors);
        match opened {
            Some(opened) if errors.is_empty() => Ok(opened),
            _ => Err(errors),
        }
    }
}
