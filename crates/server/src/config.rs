//! The configuration: defaults, then a TOML file, then environment variables, then flags. The later source wins.
//!
//! **Problem.** A typo that is ignored is found in production, a report that stops at the first error costs a restart
//! per error, and a report that quotes the file can show a secret.
//!
//! **Invariant.** Unknown keys are refused. The service checks every value that is set, even if nothing uses it, and a
//! command those that it uses. All errors are reported at once, each with its key and the source of the value. No error
//! and no output contains a secret. `docs/configuration.md` has a row for every key.
//!
//! **Proof.** `config/tests.rs`, and `configuration.rs` in `crates/server/tests/process`.
//!
//! Each section has a function that declares its keys with `keys!` and reads them.

mod declaration;
mod http;
mod keys;
mod service;
mod sources;
mod storage;
#[cfg(test)]
mod tests;
mod values;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use animal_store_adapters_http::ApiSettings;
use secrecy::SecretString;
use thiserror::Error;
use url::Url;

pub(crate) use self::{
    declaration::duration,
    http::read_tls,
    keys::{KeysConfig, RedisKeysConfig},
    service::{LogConfig, RELOAD_TARGET, read_management},
    values::Values,
};
pub use self::{
    declaration::{Key, template},
    service::ShutdownConfig,
    sources::Sources,
    storage::{PostgresConfig, SqliteConfig, StorageConfig},
};

/// The valid configuration of the service.
#[derive(Debug)]
pub struct Config {
    pub(crate) listen: SocketAddr,
    /// The API.
    pub http: ApiSettings,
    /// `false`: the deprecated operation is 410.
    pub(crate) serves_get_pet: bool,
    /// Address of the management listener, if there is one.
    pub(crate) management: Option<SocketAddr>,
    /// The storage of pets.
    pub storage: StorageConfig,
    pub(crate) keys: KeysConfig,
    pub(crate) log: LogConfig,
    /// The collector of traces, if there is one.
    pub(crate) traces: Option<Url>,
    /// Timeouts of the shutdown.
    pub shutdown: ShutdownConfig,
    /// The value of every key by its name, to find what has changed. For a secret in a file, the content of the file.
    pub(crate) values: BTreeMap<&'static str, SecretString>,
    /// Warnings for the operator.
    pub(crate) warnings: Vec<String>,
}

/// All errors of a configuration. None contains a secret.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("the configuration is invalid:\n  {}", .0.join("\n  "))]
pub struct ConfigError(Vec<String>);

impl ConfigError {
    /// Creates the error about a file that is not read.
    pub(crate) fn new(error: String) -> Self {
        Self(vec![error])
    }

    /// Returns all errors in one line, for the log.
    pub(crate) fn one_line(&self) -> String {
        self.0.join("; ")
    }
}

impl Config {
    /// Returns every key, in the order of the documentation.
    pub fn all_keys() -> Vec<Key> {
        let mut values = Values::default();
        Self::read(&mut values);
        values.keys
    }

    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] with all errors.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        load(sources, Self::read)
    }

    /// Reads and checks the configuration. Returns each key with its value and the source of that, as a line of TOML
    /// that shows of a secret only whether it is set, and the warnings.
    pub(crate) fn lines(sources: &Sources) -> Result<(Vec<String>, Vec<String>), ConfigError> {
        load(sources, |values| {
            Self::read(values).map(|config| (values.lines(), config.warnings))
        })
    }

    fn read(values: &mut Values) -> Option<Self> {
        let (listen, mut http, serves_get_pet) = http::read(values);
        let management = read_management(values);
        let storage = StorageConfig::read(values);
        let keys = KeysConfig::read(values);
        if let Some(KeysConfig::Memory { tokens }) = &keys {
            values.require(
                !tokens.is_empty() || listen.ip().is_loopback(),
                &[
                    "keys.memory.tokens",
                    "keys.backend",
                    "storage.backend",
                    "http.listen",
                ],
                "is required unless http.listen is a loopback address",
            );
        }
        let log = LogConfig::read(values);
        http.errors_only = Arc::new(log.errors_only.into());
        let traces;
        (traces, http.sample_ratio) = service::read_traces(values);
        let shutdown = ShutdownConfig::read(values);
        let (storage, keys) = (storage?, keys?);
        let (values, warnings) = (values.texts(), values.warnings.clone());
        Some(Self {
            listen,
            http,
            serves_get_pet,
            management,
            storage,
            keys,
            log,
            traces,
            shutdown,
            values,
            warnings,
        })
    }

    /// Whether other machines can connect to this address of the API without TLS, and no proxy that could have it is
    /// named.
    pub(crate) fn is_unencrypted(&self, address: SocketAddr) -> bool {
        !address.ip().is_loopback() && self.http.tls.is_none() && self.http.proxies.is_empty()
    }
}

/// Reads a part of the configuration: `read` returns `None` if it added an error.
///
/// # Errors
/// [`ConfigError`] with all errors of this part, and of the sources themselves.
pub(crate) fn load<T>(
    sources: &Sources,
    read: impl FnOnce(&mut Values) -> Option<T>,
) -> Result<T, ConfigError> {
    let mut values = sources.collect();
    let read = read(&mut values);
    values.finish(read)
}
