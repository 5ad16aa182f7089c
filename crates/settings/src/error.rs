//! The errors of a configuration.

use std::collections::BTreeSet;

use thiserror::Error;

/// Errors of a configuration, in the order of the names of their settings. None contains a secret.
#[derive(Debug, Error)]
#[error("the configuration is invalid:\n  {}", self.lines().join("\n  "))]
pub struct SettingsError(pub(crate) BTreeSet<String>);

impl SettingsError {
    /// Creates one error.
    pub fn new(error: String) -> Self {
        Self(BTreeSet::from([error]))
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
