//! Selects the adapter behind each port. No other module chooses an adapter.
//!
//! Each backend has a file with everything that the program does with it: the start of the service, commands, copies,
//! migrations, and what `doctor` examines.

mod memory;
mod postgres;
mod redis;
mod sqlite;

use std::sync::Arc;

use animal_store_adapter_kit::{KeyDatabase, SqlApiKeyStore};
use animal_store_adapters_http::UseCases;
use animal_store_app::{
    CheckReadiness, Finding,
    ports::{ApiKeyDirectory, ApiKeyStore, ApiKeyUses, BulkStorage, PetRepository, Readiness},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

pub(crate) use self::sqlite::SharedFile;
use crate::config::{ApiKeysConfig, StorageConfig};

const EXPOSED: &str = "machines on the way can read and change what is sent: the connection to another machine does \
                       not require TLS with a certificate that is checked";

/// Creates the repository of one worker.
pub(crate) type NewRepository = Arc<dyn Fn() -> Arc<dyn PetRepository> + Send + Sync>;

/// A storage of pets that was started.
pub(crate) struct Storage {
    pub(crate) new_repository: NewRepository,
    /// `None`: always ready.
    pub(crate) readiness: Option<Arc<dyn Readiness>>,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
}

/// A source of API keys that was started.
pub(crate) struct ApiKeys {
    directory: Arc<dyn ApiKeyDirectory>,
    uses: Arc<dyn ApiKeyUses>,
    /// `None`: always ready.
    readiness: Option<Arc<dyn Readiness>>,
    /// See [`Adapters::api_key_tasks`].
    tasks: Vec<JoinHandle<()>>,
}

/// A backend of pets, of API keys, or of both.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    /// Returns its name, and where it is.
    fn place(&self) -> String;

    /// Examines it, and the API keys in it if there are some.
    async fn diagnose(&self, has_api_keys: bool) -> Vec<Finding>;

    /// Returns a warning if others can read the connections to it.
    fn exposure(&self) -> Option<Finding> {
        None
    }
}

/// A backend of pets.
#[async_trait]
pub(crate) trait PetsBackend: Backend {
    /// Starts the storage of the service.
    async fn start(
        &self,
        file: &mut SharedFile,
        registry: &mut Registry,
    ) -> anyhow::Result<Storage>;

    /// Starts the storage of a command. No migration is run, and a storage that is not available is an error.
    async fn start_for_command(&self, file: &mut SharedFile) -> anyhow::Result<Storage>;

    /// Opens one side of a copy. A source is read with the rights of the service, and a target is written with those of
    /// migrations.
    async fn open_bulk(&self, file: &mut SharedFile) -> anyhow::Result<Arc<dyn BulkStorage>>;

    /// Runs the pending migrations, unless `dry_run` is set. Returns their versions.
    async fn migrate(&self, dry_run: bool) -> anyhow::Result<Vec<String>>;

    /// Returns the place, equal for equal stores.
    fn identity(&self) -> String {
        self.place()
    }

    /// Returns the number of connections that this number of workers opens.
    fn connections(&self, _workers: usize) -> usize {
        0
    }
}

/// A backend of API keys.
#[async_trait]
pub(crate) trait ApiKeysBackend: Backend {
    /// Starts the source of the service.
    async fn start(
        &self,
        file: &mut SharedFile,
        registry: &mut Registry,
    ) -> anyhow::Result<ApiKeys>;

    /// Opens the store that issues API keys. `None`: the API keys are part of the configuration.
    async fn open_store(
        &self,
        file: &mut SharedFile,
    ) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>>;

    /// Returns the place where commands change the API keys.
    fn administered_place(&self) -> String {
        self.place()
    }
}

impl StorageConfig {
    pub(crate) fn backend(&self) -> &dyn PetsBackend {
        match self {
            Self::Sqlite(sqlite) => sqlite,
            Self::Memory(memory) => memory,
            Self::Postgres(postgres) => &**postgres,
        }
    }
}

impl ApiKeysConfig {
    pub(crate) fn backend(&self) -> &dyn ApiKeysBackend {
        match self {
            Self::Sqlite(sqlite) => sqlite,
            Self::Memory(memory) => memory,
            Self::Postgres(postgres) => &**postgres,
            Self::Redis(redis) => &**redis,
        }
    }

    fn is_in(&self, storage: &StorageConfig) -> bool {
        match self {
            Self::Sqlite(_) => matches!(storage, StorageConfig::Sqlite(_)),
            Self::Postgres(_) => matches!(storage, StorageConfig::Postgres(_)),
            Self::Memory(_) | Self::Redis(_) => false,
        }
    }
}

/// Returns a warning about each backend whose connections others can read.
pub(crate) fn exposures(storage: &StorageConfig, api_keys: &ApiKeysConfig) -> Vec<Finding> {
    let mut exposures = Vec::new();
    exposures.extend(storage.backend().exposure());
    if !api_keys.is_in(storage) {
        exposures.extend(api_keys.backend().exposure());
    }
    exposures
}

/// Examines the backends.
pub(crate) async fn diagnose(storage: &StorageConfig, api_keys: &ApiKeysConfig) -> Vec<Finding> {
    if api_keys.is_in(storage) {
        return storage.backend().diagnose(true).await;
    }
    // None waits for the timeouts of the other one.
    let (mut findings, in_api_keys) = tokio::join!(
        storage.backend().diagnose(false),
        api_keys.backend().diagnose(true)
    );
    findings.extend(in_api_keys);
    findings
}

/// Starts the API keys of a database. The task that is returned ends when the directory is closed.
fn start_sql_api_keys<D: KeyDatabase>(
    store: &SqlApiKeyStore<D>,
    registry: &mut Registry,
) -> (ApiKeys, JoinHandle<()>) {
    let (uses, uses_end) = store.start_uses(registry);
    let (directory, directory_end) = store.start_directory(registry);
    let directory = Arc::new(directory);
    let api_keys = ApiKeys {
        // The probe outlives the workers.
        readiness: Some(Arc::new(Arc::downgrade(&directory))),
        directory,
        uses: Arc::new(uses),
        tasks: vec![uses_end],
    };
    (api_keys, directory_end)
}

/// What the selected adapters have besides their use cases. Nothing of it keeps them open.
pub(crate) struct Adapters {
    /// Checks of the storage and of the source of API keys. What is kept in memory is always ready.
    pub(crate) readiness: CheckReadiness,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
    /// They end after the directory of API keys and the last record of their uses are dropped, the last uses are
    /// written, and both are closed.
    pub(crate) api_key_tasks: Vec<JoinHandle<()>>,
}

/// Starts the adapters. Returns the function that creates the use cases of one worker, with or without the deprecated
/// `getPet`. The adapters end after this function and all its use cases are dropped, in any order: each task ends by
/// itself, and the shutdown waits for all.
pub(crate) async fn start(
    storage: StorageConfig,
    api_keys: ApiKeysConfig,
    mut file: SharedFile,
    registry: &mut Registry,
    serves_get_pet: bool,
) -> anyhow::Result<(impl Fn() -> UseCases + Clone + Send + 'static, Adapters)> {
    let Storage {
        new_repository,
        readiness: storage_probe,
        writer,
    } = storage.backend().start(&mut file, registry).await?;
    let ApiKeys {
        directory,
        uses,
        readiness: api_keys_probe,
        tasks: api_key_tasks,
    } = api_keys.backend().start(&mut file, registry).await?;
    file.register_metrics(registry);
    let pets = storage.backend().place();
    let api_keys = api_keys.backend().place();
    tracing::info!(pets, api_keys, "storage selected");
    let adapters = Adapters {
        readiness: CheckReadiness::new(storage_probe, api_keys_probe),
        writer,
        api_key_tasks,
    };
    let use_cases = move || {
        let directory = Arc::clone(&directory);
        let mut use_cases = UseCases::new(new_repository(), directory, Arc::clone(&uses));
        if !serves_get_pet {
            use_cases.get_pet = None;
        }
        use_cases
    };
    Ok((use_cases, adapters))
}
