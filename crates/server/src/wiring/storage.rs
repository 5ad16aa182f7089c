//! The storage of pets, and the SQLite file, which API keys may share with it.

use std::sync::Arc;

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_adapters_postgres::{PgStorage, SchemaMode};
use animal_store_adapters_sqlite::{self as sqlite, SqliteFile, SqliteFileError, SqliteStorage};
use animal_store_app::ports::{PetRepository, Readiness};
use anyhow::{Context, anyhow};
use prometheus_client::registry::Registry;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{
    cli::InvalidConfig,
    config::{SqliteConfig, StorageConfig},
};

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

/// How a process uses the SQLite file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileUse {
    /// Reads an existing file, and changes no byte of it.
    Read,
    /// Writes an existing file with the current schema.
    Write,
    /// Writes the file, and creates it if there is none.
    WriteOrCreate,
    /// Serves the file: creates it if there is none, and runs pending migrations.
    Serve,
}

/// The SQLite file. The first adapter that needs it opens it, and the others share it.
pub(crate) struct SharedFile {
    usage: FileUse,
    file: Option<SqliteFile>,
}

impl SharedFile {
    pub(crate) const fn new(usage: FileUse) -> Self {
        Self { usage, file: None }
    }

    pub(crate) async fn open(&mut self, config: &SqliteConfig) -> anyhow::Result<SqliteFile> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let (path, timeout, usage) = (config.path.clone(), config.settings.timeout, self.usage);
        let opened = spawn_blocking(move || {
            let is_new = || path.metadata().map_or(true, |file| file.len() == 0);
            let usage = match usage {
                FileUse::Read => sqlite::FileUse::Read,
                FileUse::WriteOrCreate if is_new() => sqlite::FileUse::Create,
                FileUse::Write | FileUse::WriteOrCreate => sqlite::FileUse::Write,
                FileUse::Serve => sqlite::FileUse::Create,
            };
            SqliteFile::open(&path, usage, timeout)
        });
        Ok(self.file.insert(opened.await??).clone())
    }

    /// Registers the metrics of the file, if it was opened.
    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        if let Some(file) = &self.file {
            file.register_metrics(registry);
        }
    }
}

/// Adds the flag that makes a new store to the error of a missing file.
pub(crate) fn suggest_create(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<SqliteFileError>() {
        Some(missing) if missing.is_missing() => anyhow!("{error}; to make a new store, add --create"),
        _ => error,
    }
}
