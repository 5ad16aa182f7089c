//! Selects the adapter behind each port. No other module chooses an adapter.

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_adapters_memory::{MemoryApiKeyDirectory, MemoryPetRepository};
use animal_store_adapters_postgres::PgStorage;
use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyStore, RedisApiKeyUses};
use animal_store_app::{
    Authenticate, CheckReadiness, CreatePet, GetPet, ListPets, NoteDeprecatedUse,
    ports::{ApiKeyDirectory, ApiKeyStore, ApiKeyUses, PetRepository, Readiness},
};
use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::config::{KeysConfig, StorageConfig};

/// The adapters that the configuration selects.
pub(crate) struct Adapters {
    directory: Arc<dyn ApiKeyDirectory>,
    new_repository: NewRepository,
    new_uses: NewUses,
    /// Checks of the storage and of the source of API keys. What is kept in memory is always ready.
    pub(crate) readiness: CheckReadiness,
    /// Resolves after the last repository is dropped and all queued creates have their response.
    pub(crate) writer: Option<JoinHandle<()>>,
    /// Resolves after the last record of uses of API keys is dropped and its last uses are written.
    pub(crate) uses_writer: Option<JoinHandle<()>>,
}

/// Creates the repository of one worker.
type NewRepository = Arc<dyn Fn() -> Arc<dyn PetRepository> + Send + Sync>;

/// Creates the record of uses of one worker.
type NewUses = Arc<dyn Fn() -> Arc<dyn ApiKeyUses> + Send + Sync>;

impl Adapters {
    pub(crate) async fn start(
        storage: StorageConfig,
        keys: KeysConfig,
        registry: &mut Registry,
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
                let (endpoint, migrate_endpoint) = (postgres.endpoint, postgres.migrate_endpoint);
                let started = PgStorage::start(endpoint, migrate_endpoint, postgres.settings, registry).await;
                let (storage, writer_end) = started.context("the storage cannot be used")?;
                storage_probe = Some(storage.readiness());
                writer = Some(writer_end);
                Arc::new(move || Arc::new(storage.repository()))
            }
        };
        let mut uses_writer = None;
        let (directory, new_uses): (Arc<dyn ApiKeyDirectory>, NewUses) = match keys {
            KeysConfig::Memory { tokens } => {
                let directory = Arc::new(MemoryApiKeyDirectory::new(&tokens));
                (directory.clone(), Arc::new(move || directory.clone()))
            }
            KeysConfig::Redis(redis) => {
                let (uses, writer_end) = RedisApiKeyUses::start(redis.endpoint.clone(), &redis.directory, registry);
                uses_writer = Some(writer_end);
                let directory = RedisApiKeyDirectory::connect(redis.endpoint, redis.directory, registry).await;
                let directory = Arc::new(directory);
                keys_probe = Some(directory.clone());
                (directory, Arc::new(move || Arc::new(uses.recorder())))
            }
        };
        let readiness = CheckReadiness::new(storage_probe, keys_probe);
        Ok(Self { directory, new_repository, new_uses, readiness, writer, uses_writer })
    }

    /// Returns a function that creates the use cases of one worker, with or without the deprecated `getPet`.
    pub(crate) fn use_cases(&self, serves_get_pet: bool) -> impl Fn() -> UseCases + Clone + Send + 'static {
        let (directory, new_repository) = (Arc::clone(&self.directory), Arc::clone(&self.new_repository));
        let new_uses = Arc::clone(&self.new_uses);
        move || {
            let (repository, uses) = (new_repository(), new_uses());
            UseCases {
                authenticate: Authenticate::new(Arc::clone(&directory), Arc::clone(&uses)),
                list_pets: ListPets::new(Arc::clone(&repository)),
                create_pet: CreatePet::new(Arc::clone(&repository)),
                get_pet: serves_get_pet.then(|| GetPet::new(repository)),
                note_deprecated_use: NoteDeprecatedUse::new(uses),
            }
        }
    }
}

/// Returns the store that issues API keys. `None` if the API keys are part of the configuration.
pub(crate) fn api_key_store(keys: KeysConfig) -> Option<Arc<dyn ApiKeyStore>> {
    let KeysConfig::Redis(redis) = keys else { return None };
    Some(Arc::new(RedisApiKeyStore::new(redis.endpoint, &redis.directory.prefix, redis.directory.timeout)))
}
