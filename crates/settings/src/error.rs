//! The errors of a configuration.

use std::collections::BTreeSet;

use thiserror::Error;

/// Errors of a configuration, in the order of the names of their settings. None contains a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Error)]
#[error("the configuration is invalid:\n  {}", self.lines().join("\n  "))]
pub struct SettingsError(pub(crate) BTreeSet<String>);

impl SettingsError {
    /// Creates one error.
    pub fn new(error: String) -> Self {
        Self(BTreeSet::from([error]))
    }

    /// Adds an error.
    pub fn add(&mut self, error: String) {
        self.0.insert(error);
    }

    /// Returns a value, or adds its errors to these.
    pub fn check<T>(&mut self, checked: Result<T, Self>) -> Option<T> {
        checked.map_err(|errors| self.0.extend(errors.0)).ok()
    }

    /// Whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each error.
    pub fn lines(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    /// Returns all errors in one line, for a log.
    pub fn one_line(&self) -> String {
        self.lines().join("; ")
    }
}
