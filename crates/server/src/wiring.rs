//! Selects the adapter behind each port. No other module chooses an adapter.
//!
//! Each backend has a file with everything that the program does with it: the start of the service, commands, copies,
//! migrations, and what `doctor` examines.

mod memory;
mod postgres;
mod redis;
mod sqlite;

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_app::{
    CheckReadiness, Finding,
    ports::{ApiKeyDirectory, ApiKeyStore, ApiKeyUses, BulkStorage, PetRepository, Readiness},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

pub(crate) use self::sqlite::SharedFile;
use self::{
    memory::{MemoryKeys, MemoryPets},
    postgres::Postgres,
    redis::Redis,
    sqlite::Sqlite,
};
use crate::config::{KeysConfig, StorageConfig};

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
pub(crate) struct Keys {
    directory: Arc<dyn ApiKeyDirectory>,
    uses: Arc<dyn ApiKeyUses>,
    /// `None`: always ready.
    readiness: Option<Arc<dyn Readiness>>,
    /// See [`Adapters::uses_writer`].
    writer: Option<JoinHandle<()>>,
}

/// A backend of pets.
#[async_trait]
pub(crate) trait PetsBackend: Send + Sync {
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

    /// Examines the storage, and the API keys if they are in it.
    async fn diagnose(&self, keys: &KeysConfig) -> Vec<Finding>;

    /// Returns a warning if others can read the connections to the storage.
    fn exposure(&self) -> Option<Finding> {
        None
    }
}

/// A backend of API keys.
#[async_trait]
pub(crate) trait KeysBackend: Send + Sync {
    /// Starts the source of the service.
    async fn start(&self, file: &mut SharedFile, registry: &mut Registry) -> anyhow::Result<Keys>;

    /// Opens the store that issues API keys. `None`: the API keys are part of the configuration.
    async fn open_store(
        &self,
        file: &mut SharedFile,
    ) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>>;

    /// Examines the source, unless it is examined as the storage of pets.
    async fn diagnose(&self, storage: &StorageConfig) -> Vec<Finding>;

    /// Returns a warning if others can read the connections to the source.
    fn exposure(&self) -> Option<Finding> {
        None
    }
}

impl StorageConfig {
    pub(crate) fn backend(&self) -> Box<dyn PetsBackend + '_> {
        match self {
            Self::Sqlite(sqlite) => Box::new(Sqlite(sqlite)),
            Self::Memory {
                idempotency_retention,
            } => Box::new(MemoryPets(*idempotency_retention)),
            Self::Postgres(postgres) => Box::new(Postgres(postgres)),
        }
    }
}

impl KeysConfig {
    pub(crate) fn backend(&self) -> Box<dyn KeysBackend + '_> {
        match self {
            Self::Sqlite(sqlite) => Box::new(Sqlite(sqlite)),
            Self::Memory { tokens } => Box::new(MemoryKeys(tokens)),
            Self::Postgres(postgres) => Box::new(Postgres(postgres)),
            Self::Redis(redis) => Box::new(Redis(redis)),
        }
    }
}

/// Returns a warning about each store whose connections others can read.
pub(crate) fn exposures(storage: &StorageConfig, keys: &KeysConfig) -> Vec<Finding> {
    let exposures = [storage.backend().exposure(), keys.backend().exposure()];
    exposures.into_iter().flatten().collect()
}

/// What the selected adapters have besides their use cases. Nothing of it keeps them open.
pub(crate) struct Adapters {
    /// Checks of the storage and of the source of API keys. What is kept in memory is always ready.
    pub(crate) readiness: CheckReadiness,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
    /// Resolves after the directory of API keys and the last record of their uses are dropped, the last uses are
    /// written, and both are closed.
    pub(crate) uses_writer: Option<JoinHandle<()>>,
}

/// Starts the adapters. Returns the function that creates the use cases of one worker, with or without the deprecated
/// `getPet`. The adapters end after this function and all its use cases are dropped, in any order: each writer ends by
/// itself, and the shutdown waits for both.
pub(crate) async fn start(
    storage: StorageConfig,
    keys: KeysConfig,
    mut file: SharedFile,
    registry: &mut Registry,
    serves_get_pet: bool,
) -> anyhow::Result<(impl Fn() -> UseCases + Clone + Send + 'static, Adapters)> {
    let Storage {
        new_repository,
        readiness: storage_probe,
        writer,
    } = storage.backend().start(&mut file, registry).await?;
    let Keys {
        directory,
        uses,
        readiness: keys_probe,
        writer: uses_writer,
    } = keys.backend().start(&mut file, registry).await?;
    file.register_metrics(registry);
    tracing::info!(pets = %storage, api_keys = %keys, "storage selected");
    let adapters = Adapters {
        readiness: CheckReadiness::new(storage_probe, keys_probe),
        writer,
        uses_writer,
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
