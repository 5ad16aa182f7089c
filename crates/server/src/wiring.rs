//! Which adapter stands behind which port: the one place that knows.

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_adapters_memory::{MemoryApiKeyDirectory, MemoryPetRepository};
use animal_store_adapters_redis::{RedisApiKeyDirectory, RedisApiKeyStore};
use animal_store_app::{
    Authenticate, CreatePet, GetPet, ListPets,
    ports::{ApiKeyDirectory, ApiKeyStore, PetRepository, Readiness},
};

use crate::config::{KeysConfig, StorageConfig};

/// The use cases over the adapters that the configuration names, and what has to work for them to work.
pub(crate) async fn use_cases(storage: &StorageConfig, keys: KeysConfig) -> (UseCases, Vec<Arc<dyn Readiness>>) {
    let repository = pet_repository(storage);
    let (directory, readiness) = api_key_directory(keys).await;
    let use_cases = UseCases {
        authenticate: Authenticate::new(directory),
        list_pets: ListPets::new(Arc::clone(&repository)),
        create_pet: CreatePet::new(Arc::clone(&repository)),
        get_pet: GetPet::new(repository),
    };
    (use_cases, readiness)
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

fn pet_repository(config: &StorageConfig) -> Arc<dyn PetRepository> {
    match config {
        StorageConfig::Memory => {
            tracing::warn!("animals are kept in memory: they are gone when the process ends");
            Arc::new(MemoryPetRepository::new())
        }
    }
}

async fn api_key_directory(keys: KeysConfig) -> (Arc<dyn ApiKeyDirectory>, Vec<Arc<dyn Readiness>>) {
    match keys {
        KeysConfig::Memory { tokens } => (Arc::new(MemoryApiKeyDirectory::new(&tokens)), Vec::new()),
        KeysConfig::Redis(redis) => {
            let directory = Arc::new(RedisApiKeyDirectory::connect(redis.endpoint, redis.directory).await);
            (directory.clone(), vec![directory])
        }
    }
}
