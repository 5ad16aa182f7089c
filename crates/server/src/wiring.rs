//! Which adapter stands behind which port: the one place that knows.

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_adapters_memory::{MemoryApiKeyDirectory, MemoryPetRepository};
use animal_store_adapters_postgres::{PgStorage, WriterTask};
use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyStore};
use animal_store_app::{
    Authenticate, CreatePet, GetPet, ListPets,
    ports::{ApiKeyDirectory, ApiKeyStore, PetRepository, Readiness},
};

use crate::config::{KeysConfig, StorageConfig};

/// The adapters that the configuration names.
pub(crate) struct Adapters {
    directory: Arc<dyn ApiKeyDirectory>,
    pet_repositories: PetRepositories,
    /// What has to work for the service to work.
    pub(crate) readiness: Vec<Arc<dyn Readiness>>,
    /// What ends once nobody uses the storage any more.
    pub(crate) writer: Option<WriterTask>,
}

/// Each worker has a repository of its own, where the adapter wants that.
type PetRepositories = Arc<dyn Fn() -> Arc<dyn PetRepository> + Send + Sync>;

impl Adapters {
    /// Begins to use what they need.
    ///
    /// # Errors
    /// Where the storage cannot be used as it is. That something is away is no error, unless the configuration insists.
    pub(crate) async fn start(storage: StorageConfig, keys: KeysConfig) -> anyhow::Result<Self> {
        let (pet_repositories, storage_readiness, writer) = pet_repositories(storage).await?;
        let (directory, keys_readiness) = api_key_directory(keys).await;
        let readiness = storage_readiness.into_iter().chain(keys_readiness).collect();
        Ok(Self { directory, pet_repositories, readiness, writer })
    }

    /// Makes the use cases of one worker.
    pub(crate) fn use_cases(&self) -> impl Fn() -> UseCases + Clone + Send + 'static {
        let (directory, pet_repositories) = (Arc::clone(&self.directory), Arc::clone(&self.pet_repositories));
        move || {
            let repository = pet_repositories();
            UseCases {
                authenticate: Authenticate::new(Arc::clone(&directory)),
                list_pets: ListPets::new(Arc::clone(&repository)),
                create_pet: CreatePet::new(Arc::clone(&repository)),
                get_pet: GetPet::new(repository),
            }
        }
    }
}

/// Where the configuration keeps API keys, if that is outside of the process.
pub(crate) fn api_key_store(keys: KeysConfig) -> Option<Arc<dyn ApiKeyStore>> {
    match keys {
        KeysConfig::Memory { .. } => None,
        KeysConfig::Redis(redis) => {
            let settings = redis.directory;
            Some(Arc::new(RedisApiKeyStore::new(redis.endpoint, &settings.prefix, settings.timeout)))
        }
    }
}

async fn pet_repositories(
    config: StorageConfig,
) -> anyhow::Result<(PetRepositories, Option<Arc<dyn Readiness>>, Option<WriterTask>)> {
    match config {
        StorageConfig::Memory { idempotency_retention } => {
            tracing::warn!("animals are kept in memory: they are gone when the process ends");
            let repository = Arc::new(MemoryPetRepository::new(idempotency_retention));
            Ok((Arc::new(move || repository.clone()), None, None))
        }
        StorageConfig::Postgres(postgres) => {
            let (storage, writer) =
                PgStorage::start(postgres.endpoint, postgres.migrate_endpoint, postgres.settings).await?;
            let readiness = storage.readiness();
            Ok((Arc::new(move || Arc::new(storage.repository())), Some(readiness), Some(writer)))
        }
    }
}

async fn api_key_directory(keys: KeysConfig) -> (Arc<dyn ApiKeyDirectory>, Option<Arc<dyn Readiness>>) {
    match keys {
        KeysConfig::Memory { tokens } => (Arc::new(MemoryApiKeyDirectory::new(&tokens)), None),
        KeysConfig::Redis(redis) => {
            let directory = Arc::new(RedisApiKeyDirectory::connect(redis.endpoint, redis.directory).await);
            (directory.clone(), Some(directory))
        }
    }
}
