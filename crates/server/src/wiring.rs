//! Selects the adapter behind each port. No other module chooses an adapter.

mod stores;

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_adapters_memory::MemoryApiKeyDirectory;
use animal_store_adapters_postgres::PgApiKeyStore;
use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyUses};
use animal_store_adapters_sqlite::SqliteApiKeyStore;
use animal_store_app::{
    Authenticate, CheckReadiness, CreatePet, GetPet, ListPets,
    ports::{ApiKeyDirectory, ApiKeyUses, Readiness},
};
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

pub(crate) use self::stores::{SharedFile, Storage, api_key_store, bulk_storage};
use crate::config::{KeysConfig, StorageConfig};

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

/// The source of API keys.
struct Keys {
    directory: Arc<dyn ApiKeyDirectory>,
    uses: Arc<dyn ApiKeyUses>,
    /// `None`: always ready.
    readiness: Option<Arc<dyn Readiness>>,
    /// See [`Adapters::uses_writer`].
    writer: Option<JoinHandle<()>>,
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
    let (pets, api_keys) = (storage.to_string(), keys.to_string());
    let Storage {
        new_repository,
        readiness: storage_probe,
        writer,
    } = Storage::start(storage, &mut file, registry).await?;
    let Keys {
        directory,
        uses,
        readiness: keys_probe,
        writer: uses_writer,
    } = Keys::start(keys, &mut file, registry).await?;
    file.register_metrics(registry);
    tracing::info!(pets, api_keys, "storage selected");
    let adapters = Adapters {
        readiness: CheckReadiness::new(storage_probe, keys_probe),
        writer,
        uses_writer,
    };
    let use_cases = move || {
        let repository = new_repository();
        UseCases {
            authenticate: Authenticate::new(Arc::clone(&directory), Arc::clone(&uses)),
            list_pets: ListPets::new(Arc::clone(&repository)),
            create_pet: CreatePet::new(Arc::clone(&repository)),
            get_pet: serves_get_pet.then(|| GetPet::new(repository)),
            uses: Arc::clone(&uses),
        }
    };
    Ok((use_cases, adapters))
}

impl Keys {
    async fn start(
        keys: KeysConfig,
        file: &mut SharedFile,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        Ok(match keys {
            KeysConfig::Sqlite(sqlite) => {
                let store = SqliteApiKeyStore::new(file.open(&sqlite).await?);
                store.warn_of_backup().await?;
                let (uses, writer_end) = store.start_uses(registry);
                let (directory, follower_end) = store.start_directory(registry);
                let directory = Arc::new(directory);
                Self {
                    // The probe outlives the workers.
                    readiness: Some(Arc::new(Arc::downgrade(&directory))),
                    directory,
                    uses: Arc::new(uses),
                    writer: Some(tokio::spawn(async {
                        _ = tokio::join!(writer_end, follower_end);
                    })),
                }
            }
            KeysConfig::Memory { tokens } => {
                let directory = Arc::new(MemoryApiKeyDirectory::new(&tokens));
                Self {
                    uses: directory.clone(),
                    directory,
                    readiness: None,
                    writer: None,
                }
            }
            KeysConfig::Postgres(postgres) => {
                let store = PgApiKeyStore::new(postgres.endpoint, postgres.settings);
                let (uses, writer) = store.start_uses(registry);
                let directory = Arc::new(store.start_directory(registry));
                Self {
                    readiness: Some(directory.clone()),
                    directory,
                    uses: Arc::new(uses),
                    writer: Some(writer),
                }
            }
            KeysConfig::Redis(redis) => {
                let (uses, writer) =
                    RedisApiKeyUses::start(redis.endpoint.clone(), &redis.directory, registry);
                let directory =
                    RedisApiKeyDirectory::connect(redis.endpoint, redis.directory, registry).await;
                let directory = Arc::new(directory);
                Self {
                    readiness: Some(directory.clone()),
                    directory,
                    uses: Arc::new(uses),
                    writer: Some(writer),
                }
            }
        })
    }
}
