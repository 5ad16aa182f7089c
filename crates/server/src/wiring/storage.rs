use std::sync::Arc;

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_adapters_postgres::{PgStorage, SchemaMode};
use animal_store_adapters_sqlite::SqliteStorage;
use animal_store_app::ports::{PetRepository, Readiness};
use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use super::shared_file::{FileUse, SharedFile};
use crate::{cli::InvalidConfig, config::StorageConfig};

/// Creates the repository of one worker.
pub(crate) type NewRepository = Arc<dyn Fn() -> Arc<dyn PetRepository> + Send + Sync>;

/// The storage of pets that the configuration selects.
pub(crate) struct Storage {
    pub(crate) new_repository: NewRepository,
    /// `None`: always ready.
    pub(crate) readiness: Option<Arc<dyn Readiness>>,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
}

impl Storage {
    pub(crate) async fn start(
        storage: StorageConfig,
        file: &mut SharedFile,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        Ok(match storage {
            StorageConfig::Sqlite(sqlite) => {
                let started = SqliteStorage::start(&file.open(&sqlite).await?, sqlite.settings, registry)?;
                let (storage, writer) = started;
                let readiness = Some(storage.readiness());
                let new_repository: NewRepository = Arc::new(move || Arc::new(storage.repository()));
                Self { new_repository, readiness, writer: Some(writer) }
            }
            StorageConfig::Memory { idempotency_retention } => {
                tracing::warn!("pets are kept in memory and are lost when the process ends");
                let repository = Arc::new(MemoryPetRepository::new(idempotency_retention));
                Self { new_repository: Arc::new(move || repository.clone()), readiness: None, writer: None }
            }
            StorageConfig::Postgres(postgres) => {
                let (endpoint, migrate_endpoint) = (postgres.endpoint, postgres.migrate_endpoint);
                let started = PgStorage::start(endpoint, migrate_endpoint, postgres.settings, registry).await;
                let (storage, writer) = started.context("the storage cannot be used")?;
                let readiness = Some(storage.readiness());
                let new_repository: NewRepository = Arc::new(move || Arc::new(storage.repository()));
                Self { new_repository, readiness, writer: Some(writer) }
            }
        })
    }

    /// Starts a storage for a command, with a queue for this number of creates. No migration is run, and a storage that
    /// is not available is an error.
    ///
    /// # Errors
    /// If the pets are in memory, or the storage cannot be used.
    pub(crate) async fn start_for_command(
        mut storage: StorageConfig,
        usage: FileUse,
        creates: usize,
    ) -> anyhow::Result<Self> {
        match &mut storage {
            StorageConfig::Memory { .. } => return Err(in_memory()),
            StorageConfig::Sqlite(sqlite) => sqlite.settings.max_waiting_creates = creates,
            StorageConfig::Postgres(postgres) => {
                let settings = &mut postgres.settings;
                (settings.schema, settings.required_at_start) = (SchemaMode::Check, true);
                settings.max_waiting_creates = creates;
            }
        }
        Self::start(storage, &mut SharedFile::new(usage), &mut Registry::default()).await
    }

    /// Waits until everything is written and the storage is closed.
    pub(crate) async fn close(self) {
        drop(self.new_repository);
        if let Some(writer) = self.writer {
            // A panic was logged.
            let _ = writer.await;
        }
    }
}

/// The error of a command that moves pets, if they are in memory.
pub(crate) fn in_memory() -> anyhow::Error {
    let text = "storage.backend is memory: only the process that serves has its pets, and another process can neither \
                read nor add any. Set storage.backend to sqlite or postgres";
    InvalidConfig(text.to_owned()).into()
}
