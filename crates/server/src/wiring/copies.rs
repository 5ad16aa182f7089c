//! The two sides of a copy.

use std::sync::Arc;

use animal_store_adapters_postgres::{Migrations, PgBulkStorage};
use animal_store_adapters_sqlite::{SqliteBulkStorage, SqliteFile, SqliteSnapshot};
use animal_store_app::ports::{ApiKeyStore, BulkStorage, StorageSnapshot};
use anyhow::Context;

use super::{
    api_key_store,
    shared_file::{FileUse, SharedFile},
    storage::in_memory,
};
use crate::config::{KeysConfig, PostgresConfig, StorageConfig};

/// A consistent view of everything that a configuration keeps.
pub(crate) struct CopySource {
    pub(crate) pets: Arc<dyn StorageSnapshot>,
    /// `None`: the API keys are part of the configuration.
    pub(crate) api_keys: Option<Arc<dyn ApiKeyStore>>,
    /// The file of both, if there is one.
    pub(crate) file: Option<SqliteFile>,
}

/// What a configuration keeps, to be filled.
pub(crate) struct CopyTarget {
    pub(crate) pets: Arc<dyn BulkStorage>,
    /// `None`: the API keys are part of the configuration.
    pub(crate) api_keys: Option<Arc<dyn ApiKeyStore>>,
}

impl CopySource {
    /// # Errors
    /// If the pets are in memory, or the store cannot be read.
    pub(crate) async fn open(storage: StorageConfig, keys: &KeysConfig) -> anyhow::Result<Self> {
        let mut shared = SharedFile::new(FileUse::Read);
        let (pets, file): (Arc<dyn StorageSnapshot>, _) = match storage {
            StorageConfig::Memory { .. } => return Err(in_memory()),
            StorageConfig::Sqlite(sqlite) => {
                let file = shared.open(&sqlite).await?;
                let has_keys = matches!(keys, KeysConfig::Sqlite(_));
                (Arc::new(SqliteSnapshot::open(file.clone()).await?), has_keys.then_some(file))
            }
            StorageConfig::Postgres(postgres) => {
                check_schema(&postgres).await?;
                (PgBulkStorage::new(postgres.endpoint, postgres.settings).snapshot().await?.into(), None)
            }
        };
        Ok(Self { pets, api_keys: api_key_store(keys, &mut shared).await?, file })
    }
}

impl CopyTarget {
    /// A missing SQLite file is created.
    ///
    /// # Errors
    /// If the pets are in memory, or the store cannot be used.
    pub(crate) async fn open(storage: StorageConfig, keys: &KeysConfig) -> anyhow::Result<Self> {
        let mut file = SharedFile::new(FileUse::WriteOrCreate);
        let pets: Arc<dyn BulkStorage> = match storage {
            StorageConfig::Memory { .. } => return Err(in_memory()),
            StorageConfig::Sqlite(sqlite) => Arc::new(SqliteBulkStorage::new(file.open(&sqlite).await?)),
            StorageConfig::Postgres(postgres) => {
                check_schema(&postgres).await?;
                Arc::new(PgBulkStorage::new(postgres.migrate_endpoint, postgres.settings))
            }
        };
        Ok(Self { pets, api_keys: api_key_store(keys, &mut file).await? })
    }
}

/// Commands run no migrations.
async fn check_schema(postgres: &PostgresConfig) -> anyhow::Result<()> {
    let migrations = Migrations::new(postgres.migrate_endpoint.clone(), postgres.settings.connect_timeout);
    migrations.check().await.context("the storage cannot be used")
}
