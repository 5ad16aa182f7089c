use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use animal_store_adapters_files::BackupFile;
use animal_store_adapters_postgres::{Migrations, PgBulkStorage, SchemaMode};
use animal_store_adapters_redis::RedisApiKeyStore;
use animal_store_adapters_sqlite::{SqliteApiKeyStore, SqliteBulkStorage, SqliteFile};
use animal_store_app::ports::{BulkApiKeys, BulkStorage};
use anyhow::{Context, ensure};
use tokio::task::spawn_blocking;

use super::shared_file::SharedFile;
use crate::config::{KeysConfig, PostgresConfig, StorageConfig};

/// First bytes of a SQLite file.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// Timeout for the locks of a snapshot, which no other process should use.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);

/// Everything that a configuration keeps, or a backup contains, for commands that move it.
pub(crate) struct BulkStores {
    /// The pets.
    pub(crate) pets: Arc<dyn BulkStorage>,
    /// `None`: the API keys are part of the configuration.
    pub(crate) api_keys: Option<Arc<dyn BulkApiKeys>>,
    /// The SQLite file of the pets, of which a snapshot can be written.
    pub(crate) file: Option<Arc<SqliteBulkStorage>>,
    /// The backend, and where it keeps the pets. Equal for equal stores.
    pub(crate) location: String,
}

/// How a command uses a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BulkAccess {
    /// Reads it. A missing file is an error.
    Read,
    /// Adds to it. A missing file is created.
    Write,
}

impl BulkStores {
    /// Opens what a configuration keeps, after its migrations. `None`: the pets are in memory.
    ///
    /// # Errors
    /// If the storage cannot be used.
    pub(crate) async fn open(
        storage: StorageConfig,
        keys: &KeysConfig,
        access: BulkAccess,
    ) -> anyhow::Result<Option<Self>> {
        let mut shared_file = SharedFile::default();
        let mut location = storage.to_string();
        let mut file = None;
        let pets: Arc<dyn BulkStorage> = match storage {
            StorageConfig::Memory { .. } => return Ok(None),
            StorageConfig::Sqlite(sqlite) => {
                let path = &sqlite.path;
                ensure!(access == BulkAccess::Write || path.exists(), "{} does not exist", path.display());
                let pets = Arc::new(SqliteBulkStorage::new(shared_file.open(&sqlite).await?));
                location = format!("sqlite {}", path.canonicalize()?.display());
                file = Some(Arc::clone(&pets));
                pets
            }
            StorageConfig::Postgres(postgres) => {
                prepare(&postgres).await.context("the storage cannot be used")?;
                Arc::new(PgBulkStorage::new(postgres.migrate_endpoint, postgres.settings))
            }
        };
        let api_keys: Option<Arc<dyn BulkApiKeys>> = match keys {
            KeysConfig::Memory { .. } => None,
            KeysConfig::Sqlite(sqlite) => Some(Arc::new(SqliteApiKeyStore::new(shared_file.open(sqlite).await?))),
            KeysConfig::Redis(redis) => {
                let (prefix, timeout) = (&redis.directory.prefix, redis.directory.timeout);
                Some(Arc::new(RedisApiKeyStore::new(redis.endpoint.clone(), prefix, timeout)))
            }
        };
        Ok(Some(Self { pets, api_keys, file, location }))
    }

    /// Opens a backup in either format.
    ///
    /// # Errors
    /// If it cannot be read, or is not complete.
    pub(crate) async fn open_backup(path: PathBuf) -> anyhow::Result<Self> {
        spawn_blocking(move || {
            let location = path.display().to_string();
            if is_sqlite(&path)? {
                let file = SqliteFile::open(&path, SNAPSHOT_TIMEOUT)?;
                let api_keys: Arc<dyn BulkApiKeys> = Arc::new(SqliteApiKeyStore::new(file.clone()));
                let pets = Arc::new(SqliteBulkStorage::new(file));
                return Ok(Self { pets, api_keys: Some(api_keys), file: None, location });
            }
            let backup = Arc::new(BackupFile::open(&path)?);
            Ok(Self { pets: backup.clone(), api_keys: Some(backup), file: None, location })
        })
        .await?
    }
}

fn is_sqlite(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(SQLITE_MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(start == SQLITE_MAGIC)
}

/// Runs the pending migrations, or refuses them, as a start of the service does.
async fn prepare(postgres: &PostgresConfig) -> anyhow::Result<()> {
    let migrations = Migrations::new(postgres.migrate_endpoint.clone(), postgres.settings.connect_timeout);
    match postgres.settings.schema {
        SchemaMode::Migrate => drop(migrations.run().await?),
        SchemaMode::Check => {
            let pending = migrations.pending().await?;
            ensure!(pending.is_empty(), "migrations are pending: run animal-store migrate");
        }
    }
    Ok(())
}
