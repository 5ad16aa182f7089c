//! What an operator may set, and where it may be set: defaults, then a TOML file, then the environment, then flags.
//!
//! Each section is a file with its keys, their defaults and what they mean. `docs/configuration.md` lists the same
//! keys; a test keeps it complete.

mod http;
mod key;
mod keys;
mod log;
mod management;
mod shutdown;
mod sources;
mod storage;
#[cfg(test)]
mod tests;
mod values;

use std::fmt;

use self::values::Values;
pub use self::{
    http::HttpConfig,
    key::Key,
    keys::{KeysConfig, RedisKeysConfig},
    log::{LogConfig, LogFormat},
    management::ManagementConfig,
    shutdown::ShutdownConfig,
    sources::{DEFAULT_FILE, Sources},
    storage::{PostgresConfig, StorageConfig},
};

/// The whole configuration, checked.
#[derive(Debug)]
pub struct Config {
    /// The interface for clients.
    pub http: HttpConfig,
    /// The interface for operators.
    pub management: ManagementConfig,
    /// Where animals are kept.
    pub storage: StorageConfig,
    /// Where API keys are looked up.
    pub keys: KeysConfig,
    /// What is logged, and how.
    pub log: LogConfig,
    /// How the process ends.
    pub shutdown: ShutdownConfig,
}

/// Everything that is wrong with a configuration. No secret is part of it.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError(Vec<String>);

impl Config {
    /// Every key, in the order of the documentation.
    pub fn all_keys() -> impl Iterator<Item = &'static Key> {
        [http::KEYS, management::KEYS, storage::KEYS, keys::KEYS, log::KEYS, shutdown::KEYS].into_iter().flatten()
    }

    /// Every key with its value; of a secret only whether it is set.
    pub fn effective(sources: &Sources) -> Vec<(&'static Key, String)> {
        let mut values = Values::collect(sources);
        Self::all_keys().map(|key| (key, values.show(key))).collect()
    }

    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut values = Values::collect(sources);
        let http = HttpConfig::read(&mut values);
        let management = ManagementConfig::read(&mut values);
        let storage = StorageConfig::read(&mut values);
        let keys = KeysConfig::read(&mut values, http.as_ref());
        let log = LogConfig::read(&mut values);
        let shutdown = ShutdownConfig::read(&mut values);
        values.finish()?;
        match (http, management, storage, keys, log, shutdown) {
            (Some(http), Some(management), Some(storage), Some(keys), Some(log), Some(shutdown)) => {
                Ok(Self { http, management, storage, keys, log, shutdown })
            }
            _ => unreachable!("what cannot be read is a problem, and there is none"),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the configuration is not valid:")?;
        self.0.iter().try_for_each(|problem| write!(formatter, "\n  {problem}"))
    }
}

impl std::error::Error for ConfigError {}
