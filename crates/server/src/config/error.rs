use thiserror::Error;

/// All errors of a configuration. None contains a secret.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("the configuration is invalid:\n  {}", .0.join("\n  "))]
pub struct ConfigError(pub(super) Vec<String>);
