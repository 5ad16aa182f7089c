//! The configuration of the service.
//!
//! **Problem.** A configuration must be checked as a whole before a start, and a command must not depend on what it does
//! not use: a certificate that is half replaced, or a typo in another section.
//!
//! **Invariant.** A section is plain data, or all its errors; no file that it names is opened, and nothing is started.
//! `Sections` opens the files of those that a command uses, and [`Config`] those of all. `animal_store_settings`
//! promises the rest. `docs/configuration.md` has a row for every setting.
//!
//! **Proof.** `config/tests.rs`, and `configuration.rs` in `crates/server/tests/process`.

mod api_keys;
mod files;
mod http;
mod sections;
mod service;
mod storage;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, net::SocketAddr};

use animal_store_adapters_http::ApiSettings;
use animal_store_http1::TlsIdentity;
use animal_store_settings::{Schema, SettingsError};
use secrecy::SecretString;
use url::Url;

pub(crate) use self::{
    api_keys::{KeysConfig, RedisKeysConfig},
    sections::Sections,
    service::{LogConfig, RELOAD_TARGET},
};
pub use self::{
    service::ShutdownConfig,
    storage::{PostgresConfig, SqliteConfig, StorageConfig},
};
pub use animal_store_settings::Sources;

/// Every setting.
pub static SCHEMA: Schema = Schema {
    prefix: "ANIMAL_STORE",
    sections: &[
        http::SETTINGS,
        service::MANAGEMENT,
        storage::SETTINGS,
        api_keys::SETTINGS,
        service::LOG,
        service::TRACES,
        service::SHUTDOWN,
    ],
};

/// The first lines of the file that `config init` prints.
pub(crate) const TEMPLATE_HEAD: &str = "\
# The configuration of the animal store. Each key is a comment with its default: remove the # to change a key.
# To check the file: animal-store check-config --config FILE
";

/// The valid configuration of the service, with the content of the files that it names.
#[derive(Debug)]
pub struct Config {
    pub(crate) listen: SocketAddr,
    /// The API.
    pub http: ApiSettings,
    /// The API is served by HTTPS with this identity, if there is one.
    pub(crate) tls: Option<TlsIdentity>,
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
    /// The value of every setting by its name, to find what has changed. For a secret in a file, the content of the
    /// file.
    pub(crate) values: BTreeMap<&'static str, SecretString>,
    /// The settings as TOML, for an operator.
    pub(crate) lines: Vec<String>,
    /// Warnings for the operator.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    /// Reads and checks the whole configuration, with the files that it names.
    ///
    /// # Errors
    /// All errors.
    pub fn load(sources: &Sources) -> Result<Self, SettingsError> {
        Sections::read(sources).open()
    }

    /// Whether other machines can connect to this address of the API without TLS, and no proxy that could have it is
    /// named.
    pub(crate) fn is_unencrypted(&self, address: SocketAddr) -> bool {
        !address.ip().is_loopback() && self.tls.is_none() && self.http.proxies.is_empty()
    }
}
