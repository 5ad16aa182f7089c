//! The sections of the configuration, which fail by themselves.

use std::net::SocketAddr;

use animal_store_adapters_http::ApiSettings;
use animal_store_http1::TlsIdentity;
use animal_store_settings::{SettingsError, Sources};

use super::{
    Config, KeysConfig, LogConfig, SCHEMA, ShutdownConfig, StorageConfig,
    api_keys::ApiKeysSection,
    files::Files,
    http::HttpSection,
    service::{TracesConfig, read_management},
    storage::StorageSection,
};

/// A section, or all its errors, with those that every command reports.
pub(super) type Section<T> = Result<T, SettingsError>;

/// What the sources set, by section.
pub(crate) struct Sections {
    http: Section<HttpSection>,
    pub(crate) management: Section<Option<SocketAddr>>,
    storage: Section<StorageSection>,
    keys: Section<ApiKeysSection>,
    pub(crate) log: Section<LogConfig>,
    traces: Section<TracesConfig>,
    shutdown: Section<ShutdownConfig>,
    files: Files,
}

impl Sections {
    /// Reads every section. No file is opened but that of the settings.
    pub(crate) fn read(sources: &Sources) -> Self {
        let mut values = SCHEMA.read(sources);
        let http = HttpSection::read(&mut values);
        let management = read_management(&mut values);
        let storage = StorageSection::read(&mut values);
        let keys = ApiKeysSection::read(&mut values, storage.backend);
        let log = LogConfig::read(&mut values);
        let traces = TracesConfig::read(&mut values);
        let shutdown = ShutdownConfig::read(&mut values);
        let mut sections = Self {
            http: values.section("http", http),
            management: values.section("management", management),
            storage: values.section("storage", storage),
            keys: values.section("keys", keys),
            log: values.section("log", log),
            traces: values.section("traces", traces),
            shutdown: values.section("shutdown", shutdown),
            files: Files::new(values),
        };
        if let Some(file) = &sources.file {
            sections.files.judge(file, false);
        }
        sections
    }

    /// Opens the storage of pets.
    pub(crate) fn storage(&mut self) -> Section<StorageConfig> {
        let storage = self.storage.clone()?;
        let opened = storage.open(&mut self.files);
        self.files.finish(opened)
    }

    /// Opens the source of API keys, which can be the storage of pets.
    pub(crate) fn keys(&mut self) -> Section<KeysConfig> {
        let keys = self.keys.clone()?;
        keys.open(&self.storage, &mut self.files)
    }

    /// Opens both.
    pub(crate) fn stores(&mut self) -> Section<(StorageConfig, KeysConfig)> {
        let mut errors = SettingsError::default();
        let storage = errors.check(self.storage());
        let keys = errors.check(self.keys());
        storage.zip(keys).ok_or(errors)
    }

    /// Opens the certificate of the API, if there is one.
    pub(crate) fn tls(&mut self) -> Section<Option<TlsIdentity>> {
        let http = self.http.clone()?;
        let identity = http.open_tls(&mut self.files);
        self.files.finish(Some(identity))
    }

    /// Opens everything, as a start needs it.
    ///
    /// # Errors
    /// All errors of all sections.
    pub(crate) fn open(mut self) -> Result<Config, SettingsError> {
        let mut errors = self.files.values.errors();
        let storage = errors.check(self.storage());
        let keys = errors.check(self.keys());
        let tls = errors.check(self.tls());
        if let (Some(KeysConfig::Memory { tokens }), Ok(http)) = (&keys, &self.http)
            && tokens.is_empty()
            && !http.listen.ip().is_loopback()
        {
            let rule = "is required unless http.listen is a loopback address";
            errors.add(self.files.values.error("keys.memory.tokens", rule));
        }
        let (Some(storage), Some(keys), Some(tls), true) = (storage, keys, tls, errors.is_empty())
        else {
            return Err(errors);
        };
        let http = self.http?;
        let log = self.log?;
        let traces = self.traces?;
        Ok(Config {
            listen: http.listen,
            http: ApiSettings {
                sample_ratio: traces.sample_ratio,
                errors_only: log.errors_only,
                ..http.api
            },
            tls,
            serves_get_pet: http.serves_get_pet,
            management: self.management?,
            storage,
            keys,
            log,
            traces: traces.endpoint,
            shutdown: self.shutdown?,
            values: self.files.texts(),
            lines: self.files.values.lines(),
            warnings: self.files.warnings,
        })
    }

    /// Returns the warnings about files, and the errors of the sections that a command does not use: those that it uses
    /// have none.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.files.warnings.clone();
        for error in self.files.values.errors().lines() {
            warnings.push(format!("{error}; this command does not use it"));
        }
        warnings
    }
}
