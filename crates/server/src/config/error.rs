use thiserror::Error;

/// All errors of a configuration. None contains a secret.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("the configuration is invalid:\n  {}", .0.join("\n  "))]
pub struct ConfigError(pub(super) Vec<String>);

impl ConfigError {
    /// Returns all errors in one line, for the log.
    pub(crate) fn one_line(&self) -> String {
        self.0.join("; ")
    }
}
