//! The two sides of a copy.

use std::sync::Arc;

use animal_store_adapters_postgres::{Migrations, PgBulkStorage};
use animal_store_adapters_redis::RedisApiKeyStore;
use animal_store_adapters_sqlite::{SqliteApiKeyStore, SqliteBulkStorage, SqliteFile, SqliteSnapshot};
use animal_store_app::ports::{ApiKeySource, ApiKeyTarget, BulkStorage, StorageSnapshot};
use anyhow::{Context, ensure};

use super::{
    redis_api_key_store,
    shared_file::{FileUse, SharedFile},
    storage::in_memory,
};
use crate::config::{KeysConfig, PostgresConfig, StorageConfig};

/// A consistent view of everything that a configuration keeps.
pub(crate) struct CopySource {
    pub(crate) pets: Arc<dyn StorageSnapshot>,
    /// `None`: the API keys are part of the configuration.
    pub(crate) api_keys: Option<Arc<dyn ApiKeySource>>,
    /// The file of both, if there is one.
    pub(crate) file: Option<SqliteFile>,
}

/// What a configuration keeps, to be filled.
pub(crate) struct CopyTarget {
    pub(crate) pets: Arc<dyn BulkStorage>,
    /// `None`: the API keys are part of the configuration.
    pub(crate) api_keys: Option<Arc<dyn ApiKeyTarget>>,
}

impl CopySource {
    /// # Errors
    /// If the pets are in memory, or the store cannot be read.
    pub(crate) async fn open(storage: StorageConfig, keys: &KeysConfig) -> anyhow::Result<Self> {
        let redis: Option<Arc<RedisApiKeyStore>> = redis_api_key_store(keys).map(Arc::new);
        match storage {
            StorageConfig::Memory { .. } => Err(in_memory()),
            StorageConfig::Sqlite(sqlite) => {
                let file = SharedFile::new(FileUse::Read).open(&sqlite).await?;
                let pets = Arc::new(SqliteSnapshot::open(file.clone()).await?);
                Ok(match keys {
                    KeysConfig::Sqlite(_) => Self { api_keys: Some(pets.clone()), pets, file: Some(file) },
                    _ => Self { pets, api_keys: redis.map(|store| store as _), file: None },
                })
            }
            StorageConfig::Postgres(postgres) => {
                check_schema(&postgres).await?;
                let pets = PgBulkStorage::new(postgres.endpoint, postgres.settings).snapshot().await?;
                Ok(Self { pets: pets.into(), api_keys: redis.map(|store| store as _), file: None })
            }
        }
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
        let api_keys: Option<Arc<dyn ApiKeyTarget>> = match keys {
            KeysConfig::Sqlite(sqlite) => Some(Arc::new(SqliteApiKeyStore::new(file.open(sqlite).await?))),
            keys => redis_api_key_store(keys).map(|store| Arc::new(store) as _),
        };
        Ok(Self { pets, api_keys })
    }
}

/// Commands run no migrations.
async fn check_schema(postgres: &PostgresConfig) -> anyhow::Result<()> {
    let migrations = Migrations::new(postgres.migrate_endpoint.clone(), postgres.settings.connect_timeout);
    let pending = migrations.pending().await.context("the storage cannot be used")?;
    ensure!(pending.is_empty(), "these migrations are pending: {}; run animal-store migrate", pending.join(", "));
    Ok(())
}
