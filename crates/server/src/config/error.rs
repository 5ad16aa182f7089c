use std::{error::Error, fmt};

/// All errors of a configuration. None contains a secret.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError(pub(super) Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the configuration is invalid:")?;
        self.0.iter().try_for_each(|error| write!(formatter, "\n  {error}"))
    }
}

impl Error for ConfigError {}
