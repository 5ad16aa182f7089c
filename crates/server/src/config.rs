//! The configuration: defaults, then a TOML file, then environment variables, then flags. The later source wins.
//!
//! **Problem.** A typo that is ignored is found in production, a report that stops at the first error costs a restart
//! per error, and a report that quotes the file can show a secret.
//!
//! **Invariant.** Unknown keys are refused. Every value that is set is checked, even if nothing uses it. All errors are
//! reported at once, each with its key and the source of the value. No error and no output contains a secret.
//! `docs/configuration.md` has a row for every key.
//!
//! **Proof.** `config/tests.rs`, and `secrets.rs` in `crates/server/tests/process`.
//!
//! Each section is a file: its keys with defaults and descriptions, its struct, and `read`, which checks the values.

mod error;
mod file;
mod http;
mod key;
mod keys;
mod log;
mod management;
mod setting;
mod shutdown;
mod sources;
mod storage;
#[cfg(test)]
mod tests;
mod traces;
mod values;

use std::{collections::BTreeMap, net::SocketAddr};

use secrecy::SecretString;

pub(crate) use self::values::duration;
pub use self::{
    error::ConfigError,
    key::Key,
    sources::{DEFAULT_FILE, Sources},
};
pub(crate) use self::{
    http::{HttpConfig, tls::TlsConfig},
    keys::KeysConfig,
    log::{LogConfig, LogFormat},
    shutdown::ShutdownConfig,
    storage::{StorageConfig, postgres::PostgresConfig, sqlite::SqliteConfig},
    traces::TracesConfig,
};
use self::{storage::Storage, values::Values};

/// The valid configuration.
#[derive(Debug)]
pub struct Config {
    pub(crate) http: HttpConfig,
    /// Address of the management listener, if there is one.
    pub(crate) management_listen: Option<SocketAddr>,
    pub(crate) storage: StorageConfig,
    pub(crate) keys: KeysConfig,
    pub(crate) log: LogConfig,
    pub(crate) traces: TracesConfig,
    pub(crate) shutdown: ShutdownConfig,
    /// Every key with its value. The value of a secret only says whether the secret is set.
    pub(crate) shown: Vec<(&'static Key, String)>,
    /// The value of every key by its name, to find what has changed. For a secret in a file, the content of the file.
    pub(crate) values: BTreeMap<&'static str, SecretString>,
    /// Warnings for the operator.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    /// Returns every key, in the order of the documentation.
    pub fn all_keys() -> Vec<&'static Key> {
        let storage = storage::KEYS.iter().chain(storage::sqlite::KEYS).chain(storage::postgres::KEYS);
        let keys = keys::KEYS.iter().chain(keys::redis::KEYS);
        let http = http::KEYS.iter().chain(http::tls::KEYS);
        let service = http.chain(management::KEYS).chain(storage).chain(keys);
        service.chain(log::KEYS).chain(traces::KEYS).chain(shutdown::KEYS).collect()
    }

    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] with all errors.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let all_keys = Self::all_keys();
        let mut values = Values::collect(sources, &all_keys);
        let http = HttpConfig::read(&mut values);
        let management_listen = management::read_listen(&mut values, http.listen);
        let storage = Storage::read(&mut values);
        let keys = KeysConfig::read(&mut values, http.listen, &storage);
        let log = LogConfig::read(&mut values);
        let traces = TracesConfig::read(&mut values);
        let shutdown = ShutdownConfig::read(&mut values);
        let current = all_keys.iter().map(|key| (key.name, values.current(key))).collect();
        let shown = all_keys.into_iter().map(|key| (key, values.show(key))).collect();
        let warnings = values.finish()?;
        let (Some(storage), Some(keys)) = (storage.config, keys) else {
            unreachable!("a missing value that is required is an error")
        };
        Ok(Self { http, management_listen, storage, keys, log, traces, shutdown, shown, values: current, warnings })
    }
}
