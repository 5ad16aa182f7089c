//! Selects the adapter behind each port. No other module chooses an adapter.

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_adapters_memory::{MemoryApiKeyDirectory, MemoryPetRepository};
use animal_store_adapters_postgres::PgStorage;
use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyStore};
use animal_store_app::{
    Authenticate, CheckReadiness, CreatePet, GetPet, ListPets,
    ports::{ApiKeyDirectory, ApiKeyStore, PetRepository, Readiness},
};
use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::config::{KeysConfig, StorageConfig};

/// The adapters that the configuration selects.
pub(crate) struct Adapters {
    directory: Arc<dyn ApiKeyDirectory>,
    new_repository: NewRepository,
    /// Checks of the storage and of the source of API keys. What is kept in memory is always ready.
    pub(crate) readiness: CheckReadiness,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
}

/// Creates the repository of one worker.
type NewRepository = Arc<dyn Fn() -> Arc<dyn PetRepository> + Send + Sync>;

impl Adapters {
    pub(crate) async fn start(
        storage: StorageConfig,
        keys: KeysConfig,
        _registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let mut storage_probe: Option<Arc<dyn Readiness>> = None;
        let mut keys_probe: Option<Arc<dyn Readiness>> = None;
        let mut writer = None;
        let new_repository: NewRepository = match storage {
            StorageConfig::Memory { idempotency_retention } => {
                tracing::warn!("pets are kept in memory and are lost when the process ends");
                let repository = Arc::new(MemoryPetRepository::new(idempotency_retention));
                Arc::new(move || repository.clone())
            }
            StorageConfig::Postgres(postgres) => {
                let started = PgStorage::start(postgres.endpoint, postgres.migrate_endpoint, postgres.settings).await;
                let (storage, writer_end) = started.context("the storage cannot be used")?;
                storage_probe = Some(storage.readiness());
                writer = Some(writer_end);
                Arc::new(move || Arc::new(storage.repository()))
            }
        };
        let directory: Arc<dyn ApiKeyDirectory> = match keys {
            KeysConfig::Memory { tokens } => Arc::new(MemoryApiKeyDirectory::new(&tokens)),
            KeysConfig::Redis(redis) => {
                let directory = Arc::new(RedisApiKeyDirectory::connect(redis.endpoint, redis.directory).await);
                keys_probe = Some(directory.clone());
                directory
            }
        };
        Ok(Self { directory, new_repository, readiness: CheckReadiness::new(storage_probe, keys_probe), writer })
    }

    /// Returns a function that creates the use cases of one worker.
    pub(crate) fn use_cases(&self) -> impl Fn() -> UseCases + Clone + Send + 'static {
        let (directory, new_repository) = (Arc::clone(&self.directory), Arc::clone(&self.new_repository));
        move || {
            let repository = new_repository();
            UseCases {
                authenticate: Authenticate::new(Arc::clone(&directory)),
                list_pets: ListPets::new(Arc::clone(&repository)),
                create_pet: CreatePet::new(Arc::clone(&repository)),
                get_pet: GetPet::new(repository),
            }
        }
    }
}

/// Returns the store that issues API keys. `None` if the API keys are part of the configuration.
pub(crate) fn api_key_store(keys: KeysConfig) -> Option<Arc<dyn ApiKeyStore>> {
    let KeysConfig::Redis(redis) = keys else { return None };
    Some(Arc::new(RedisApiKeyStore::new(redis.endpoint, &redis.directory.prefix, redis.directory.timeout)))
}
