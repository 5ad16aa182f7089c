//! Selects the adapter behind each port. No other module chooses an adapter.

mod copies;
mod shared_file;
mod storage;

use std::sync::{Arc, Weak};

use animal_store_adapters_http::UseCases;
use animal_store_adapters_memory::MemoryApiKeyDirectory;
use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyStore, RedisApiKeyUses};
use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    Authenticate, CheckReadiness, CreatePet, GetPet, ListPets,
    ports::{ApiKeyDirectory, ApiKeyStore, ApiKeyUses, NotReady, Readiness},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use self::storage::NewRepository;
pub(crate) use self::{
    copies::{CopySource, CopyTarget},
    shared_file::{FileUse, SharedFile, suggest_create},
    storage::Storage,
};
use crate::config::{KeysConfig, SqliteConfig, StorageConfig};

/// The adapters that the configuration selects.
pub(crate) struct Adapters {
    workers: WorkerAdapters,
    /// Checks of the storage and of the source of API keys. What is kept in memory is always ready.
    pub(crate) readiness: CheckReadiness,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
    /// Resolves after the last record of uses of API keys is dropped and its last uses are written, and no connection
    /// looks for changes of API keys.
    pub(crate) uses_writer: Option<JoinHandle<()>>,
}

/// The adapters of a worker. It drops the repository last: when the writer of the storage ends, no worker has a
/// directory of API keys, which keeps the file open.
#[derive(Clone)]
struct WorkerAdapters {
    directory: Arc<dyn ApiKeyDirectory>,
    uses: Arc<dyn ApiKeyUses>,
    new_repository: NewRepository,
}

/// A probe that does not keep its adapter open.
struct WeakProbe<T>(Weak<T>);

impl Adapters {
    pub(crate) async fn start(
        storage: StorageConfig,
        keys: KeysConfig,
        mut file: SharedFile,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let (pets, api_keys) = (storage.to_string(), keys.to_string());
        let mut keys_probe: Option<Arc<dyn Readiness>> = None;
        let Storage { new_repository, readiness: storage_probe, writer } =
            Storage::start(storage, &mut file, registry).await?;
        let mut uses_writer = None;
        let (directory, uses): (Arc<dyn ApiKeyDirectory>, Arc<dyn ApiKeyUses>) = match keys {
            KeysConfig::Sqlite(sqlite) => {
                let store = SqliteApiKeyStore::new(file.open(&sqlite).await?);
                let (uses, writer_end) = store.start_uses(registry);
                let (directory, follower_end) = store.start_directory(registry);
                uses_writer = Some(tokio::spawn(async { _ = tokio::join!(writer_end, follower_end) }));
                let directory = Arc::new(directory);
                keys_probe = Some(Arc::new(WeakProbe(Arc::downgrade(&directory))));
                (directory, Arc::new(uses))
            }
            KeysConfig::Memory { tokens } => {
                let directory = Arc::new(MemoryApiKeyDirectory::new(&tokens));
                (directory.clone(), directory)
            }
            KeysConfig::Redis(redis) => {
                let (uses, writer_end) = RedisApiKeyUses::start(redis.endpoint.clone(), &redis.directory, registry);
                uses_writer = Some(writer_end);
                let directory = RedisApiKeyDirectory::connect(redis.endpoint, redis.directory, registry).await;
                let directory = Arc::new(directory);
                keys_probe = Some(directory.clone());
                (directory, Arc::new(uses))
            }
        };
        file.register_metrics(registry);
        tracing::info!(pets, api_keys, "storage selected");
        let readiness = CheckReadiness::new(storage_probe, keys_probe);
        let workers = WorkerAdapters { directory, uses, new_repository };
        Ok(Self { workers, readiness, writer, uses_writer })
    }

    /// Returns a function that creates the use cases of one worker, with or without the deprecated `getPet`.
    pub(crate) fn use_cases(&self, serves_get_pet: bool) -> impl Fn() -> UseCases + Clone + Send + 'static {
        let workers = self.workers.clone();
        move || workers.use_cases(serves_get_pet)
    }
}

impl WorkerAdapters {
    fn use_cases(&self, serves_get_pet: bool) -> UseCases {
        let repository = (self.new_repository)();
        UseCases {
            authenticate: Authenticate::new(Arc::clone(&self.directory), Arc::clone(&self.uses)),
            list_pets: ListPets::new(Arc::clone(&repository)),
            create_pet: CreatePet::new(Arc::clone(&repository)),
            get_pet: serves_get_pet.then(|| GetPet::new(repository)),
            uses: Arc::clone(&self.uses),
        }
    }
}

#[async_trait]
impl<T: Readiness> Readiness for WeakProbe<T> {
    async fn check(&self) -> Result<(), NotReady> {
        match self.0.upgrade() {
            Some(adapter) => adapter.check().await,
            None => Err(NotReady("it has ended".into())),
        }
    }
}

/// Returns the store that issues API keys in a file.
pub(crate) async fn sqlite_api_key_store(
    config: &SqliteConfig,
    file: &mut SharedFile,
) -> anyhow::Result<Arc<SqliteApiKeyStore>> {
    Ok(Arc::new(SqliteApiKeyStore::new(file.open(config).await?)))
}

/// Returns the store that issues API keys. `None` if the API keys are part of the configuration.
pub(crate) async fn api_key_store(
    keys: &KeysConfig,
    file: &mut SharedFile,
) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
    Ok(match keys {
        KeysConfig::Sqlite(sqlite) => Some(sqlite_api_key_store(sqlite, file).await?),
        keys => redis_api_key_store(keys).map(|store| Arc::new(store) as _),
    })
}

/// Returns the store of API keys in Redis, if they are there.
fn redis_api_key_store(keys: &KeysConfig) -> Option<RedisApiKeyStore> {
    let KeysConfig::Redis(redis) = keys else { return None };
    Some(RedisApiKeyStore::new(redis.endpoint.clone(), &redis.directory.prefix, redis.directory.timeout))
}
