//! The configuration of the service.
//!
//! **Problem.** A configuration must be checked as a whole before a start, and a command must not depend on what it does
//! not use: a certificate that is half replaced, or a typo in another section.
//!
//! **Invariant.** A section is plain data, or all its errors; nothing is started. The files that a section names are
//! opened only for a command that uses it. A command fails on the sections that it uses, and warns of errors in the
//! others. `animal_store_settings` promises the rest. `docs/configuration.md` has a row for every setting.
//!
//! **Proof.** `config/tests.rs`, and `configuration.rs` in `crates/server/tests/process`.

mod api_keys;
mod http;
mod service;
mod storage;
mod stores;
#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
};

use animal_store_adapter_kit::{Believed, object_to_readers};
use animal_store_adapters_http::ApiSettings;
use animal_store_http1::TlsIdentity;
use animal_store_settings::{Schema, SettingsError, Values};
use url::Url;

pub(crate) use self::{
    api_keys::ApiKeysConfig,
    http::read_tls_identity,
    service::{LogConfig, RELOAD_TARGET, read_management},
};
use self::{
    api_keys::require_tokens,
    http::{HttpConfig, open_tls, read_listen},
    service::TracesConfig,
};
pub use self::{service::ShutdownConfig, storage::StorageConfig, stores::Stores};
use crate::backends::{memory, postgres, redis, sqlite};
pub use animal_store_settings::Sources;

/// Every setting.
pub static SCHEMA: Schema = Schema {
    prefix: "ANIMAL_STORE",
    sections: &[
        http::SETTINGS,
        service::MANAGEMENT,
        storage::SETTINGS,
        sqlite::SETTINGS,
        postgres::SETTINGS,
        api_keys::SETTINGS,
        memory::SETTINGS,
        redis::SETTINGS,
        service::LOG,
        service::TRACES,
        service::SHUTDOWN,
    ],
    judge,
};

/// The first lines of the file that `config init` prints.
pub(crate) const TEMPLATE_HEAD: &str = "\
# The configuration of the animal store. Each setting is a comment with its default: remove the # to change it.
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
    /// Address of the management listener, if there is one.
    pub(crate) management: Option<SocketAddr>,
    /// Where pets and API keys are.
    pub stores: Stores,
    pub(crate) log: LogConfig,
    /// The collector of traces, if there is one.
    pub(crate) traces: Option<Url>,
    /// Timeouts of the shutdown.
    pub shutdown: ShutdownConfig,
    /// The values as they were read, with their sources and the warnings about them.
    pub(crate) values: Values,
}

impl Config {
    /// Reads and checks the whole configuration, with the files that it names.
    ///
    /// # Errors
    /// All errors.
    pub fn load(sources: &Sources) -> Result<Self, SettingsError> {
        SCHEMA.read(sources).open(|values| {
            require_two_addresses(values);
            Self::read(values)
        })
    }

    /// The same for a process that was passed a socket, which replaces `http.listen`.
    pub(crate) fn load_with_socket(sources: &Sources) -> Result<Self, SettingsError> {
        SCHEMA.read(sources).open(Self::read)
    }

    fn read(values: &mut Values) -> Option<Self> {
        let http = HttpConfig::read(values);
        let tls = open_tls(values, http.tls.as_ref());
        let management = read_management(values);
        let stores = Stores::read(values);
        let log = LogConfig::read(values);
        let traces = TracesConfig::read(values);
        let shutdown = ShutdownConfig::read(values);
        require_tokens(values, http.listen);
        Some(Self {
            listen: http.listen,
            http: ApiSettings {
                sample_ratio: traces.sample_ratio,
                errors_only: log.errors_only,
                ..http.api
            },
            tls,
            management,
            stores: stores?,
            log,
            traces: traces.endpoint,
            shutdown,
            values: values.clone(),
        })
    }

    /// Whether other machines can connect to this address of the API without TLS, and no proxy that could have it is
    /// named.
    pub(crate) fn is_unencrypted(&self, address: SocketAddr) -> bool {
        !address.ip().is_loopback() && self.tls.is_none() && self.http.proxies.is_empty()
    }
}

/// Requires that the process can bind both addresses.
fn require_two_addresses(values: &mut Values) {
    let api = read_listen(values);
    let management = read_management(values);
    values.require(
        management.is_none_or(|management| !is_shared(api, management)),
        &["management.listen", "http.listen"],
        "must be another address than http.listen",
    );
}

/// Whether only one socket can listen at two addresses.
fn is_shared(one: SocketAddr, other: SocketAddr) -> bool {
    let hosts = [one.ip().to_canonical(), other.ip().to_canonical()];
    let is_one_family = hosts[0].is_ipv4() == hosts[1].is_ipv4();
    let is_one_host = hosts[0] == hosts[1] || hosts.iter().any(IpAddr::is_unspecified);
    // 0: a free port.
    one.port() == other.port() && one.port() != 0 && is_one_family && is_one_host
}

/// Reads the sources for a command that uses some sections. All are checked, and no file is opened but that of the
/// settings.
pub(crate) fn read(sources: &Sources) -> Values {
    let mut values = SCHEMA.read(sources);
    HttpConfig::read(&mut values);
    read_management(&mut values);
    Stores::read(&mut values);
    LogConfig::read(&mut values);
    TracesConfig::read(&mut values);
    ShutdownConfig::read(&mut values);
    values
}

/// Returns warnings about the other users who can change a file that the configuration names, or read its secrets.
fn judge(path: &Path, has_secrets: bool) -> Vec<String> {
    let believed = Believed::this_process().and_owner_of_folder(path);
    let mut warnings = Vec::new();
    if let Some(objection) = believed.object(path) {
        warnings.push(objection.to_string());
    }
    if let Some(objection) = object_to_readers(path).filter(|_| has_secrets) {
        warnings.push(objection.to_string());
    }
    warnings
}
