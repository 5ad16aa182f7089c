//! The stores that a configuration selects, for the service and for each command, and the SQLite file, which pets and
//! API keys may share.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_adapters_postgres::{
    Migrations, PgApiKeyStore, PgBulkStorage, PgStorage, PostgresSettings, SchemaMode,
};
use animal_store_adapters_redis::RedisApiKeyStore;
use animal_store_adapters_sqlite::{
    FileUse, SqliteApiKeyStore, SqliteBulkStorage, SqliteFile, SqliteStorage,
};
use animal_store_app::ports::{ApiKeyStore, BulkStorage, PetRepository, Readiness};
use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{
    cli::InvalidConfig,
    config::{KeysConfig, SqliteConfig, StorageConfig},
};

/// A command waits for Redis for longer than a request does.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

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
                let started =
                    SqliteStorage::start(&file.open(&sqlite).await?, sqlite.settings, registry)?;
                let (storage, writer) = started;
                let readiness = Some(storage.readiness());
                let new_repository: NewRepository =
                    Arc::new(move || Arc::new(storage.repository()));
                Self {
                    new_repository,
                    readiness,
                    writer: Some(writer),
                }
            }
            StorageConfig::Memory {
                idempotency_retention,
            } => {
                tracing::warn!("pets are kept in memory and are lost when the process ends");
                let repository = Arc::new(MemoryPetRepository::new(idempotency_retention));
                Self {
                    new_repository: Arc::new(move || repository.clone()),
                    readiness: None,
                    writer: None,
                }
            }
            StorageConfig::Postgres(postgres) => {
                let (endpoint, migrate_endpoint) = (postgres.endpoint, postgres.migrate_endpoint);
                let started =
                    PgStorage::start(endpoint, migrate_endpoint, postgres.settings, registry).await;
                let (storage, writer) = started.context("the storage cannot be used")?;
                let readiness = Some(storage.readiness());
                let new_repository: NewRepository =
                    Arc::new(move || Arc::new(storage.repository()));
                Self {
                    new_repository,
                    readiness,
                    writer: Some(writer),
                }
            }
        })
    }

    /// Starts the storage of a command. No migration is run, and a storage that is not available is an error.
    ///
    /// # Errors
    /// If the pets are in memory, or the storage cannot be used.
    pub(crate) async fn start_for_command(
        mut storage: StorageConfig,
        usage: FileUse,
    ) -> anyhow::Result<Self> {
        match &mut storage {
            StorageConfig::Memory { .. } => return Err(in_memory()),
            StorageConfig::Sqlite(_) => {}
            StorageConfig::Postgres(postgres) => {
                postgres.settings.schema = SchemaMode::Check;
                postgres.settings.required_at_start = true;
            }
        }
        Self::start(
            storage,
            &mut SharedFile::new(usage),
            &mut Registry::default(),
        )
        .await
    }

    /// Waits until everything is written and the storage is closed. The caller has dropped its repositories.
    pub(crate) async fn close(self) {
        drop(self.new_repository);
        if let Some(writer) = self.writer {
            // A panic was logged.
            let _ = writer.await;
        }
    }
}

/// Returns one side of a copy. A source is read with the rights of the service, and a target is written with those of
/// migrations.
///
/// # Errors
/// If the pets are in memory, or the storage cannot be used.
pub(crate) async fn bulk_storage(
    storage: StorageConfig,
    file: &mut SharedFile,
) -> anyhow::Result<Arc<dyn BulkStorage>> {
    Ok(match storage {
        StorageConfig::Memory { .. } => return Err(in_memory()),
        StorageConfig::Sqlite(sqlite) => {
            Arc::new(SqliteBulkStorage::new(&file.open(&sqlite).await?))
        }
        StorageConfig::Postgres(postgres) => {
            let migrations = Migrations::new(
                postgres.migrate_endpoint.clone(),
                postgres.settings.connect_timeout,
            );
            migrations
                .check()
                .await
                .context("the storage cannot be used")?;
            let is_source = file.usage == FileUse::Read;
            let endpoint = if is_source {
                postgres.endpoint
            } else {
                postgres.migrate_endpoint
            };
            Arc::new(PgBulkStorage::new(endpoint, postgres.settings))
        }
    })
}

/// Returns the store that issues API keys. `None` if the API keys are part of the configuration.
pub(crate) async fn api_key_store(
    keys: &KeysConfig,
    file: &mut SharedFile,
) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
    Ok(match keys {
        KeysConfig::Sqlite(sqlite) => {
            Some(Arc::new(SqliteApiKeyStore::new(file.open(sqlite).await?)))
        }
        KeysConfig::Postgres(postgres) => {
            // Past a pooler, and with the rights of migrations.
            let settings = PostgresSettings {
                transaction_pooling: false,
                ..postgres.settings.clone()
            };
            Some(Arc::new(PgApiKeyStore::new(
                postgres.migrate_endpoint.clone(),
                settings,
            )))
        }
        KeysConfig::Redis(redis) => {
            let endpoint = redis.administration().clone();
            let (prefix, replicas) = (&redis.directory.prefix, redis.wait_replicas);
            Some(Arc::new(RedisApiKeyStore::new(
                endpoint,
                prefix,
                COMMAND_TIMEOUT,
                replicas,
            )))
        }
        KeysConfig::Memory { .. } => None,
    })
}

fn in_memory() -> anyhow::Error {
    let text = "storage.backend is memory: only the process that serves has its pets, and another process can neither \
                read nor add any. Set storage.backend to sqlite or postgres";
    InvalidConfig(text.to_owned()).into()
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
        let opened = spawn_blocking(move || SqliteFile::open(&path, usage, timeout));
        Ok(self.file.insert(opened.await??).clone())
    }

    /// Registers the metrics of the file, if it was opened.
    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        if let Some(file) = &self.file {
            file.register_metrics(registry);
        }
    }
}
