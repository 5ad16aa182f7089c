//! Which adapter stands behind which port: the one place that knows.

use std::sync::Arc;

use animal_store_adapters_http::UseCases;
use animal_store_adapters_memory::{MemoryApiKeyDirectory, MemoryPetRepository};
use animal_store_app::{
    Authenticate, CreatePet, GetPet, ListPets,
    ports::{ApiKeyDirectory, PetRepository},
};

use crate::config::{KeysConfig, StorageConfig};

/// The use cases over the adapters that the configuration names.
pub(crate) fn use_cases(storage: &StorageConfig, keys: &KeysConfig) -> UseCases {
    let repository = pet_repository(storage);
    UseCases {
        authenticate: Authenticate::new(api_key_directory(keys)),
        list_pets: ListPets::new(Arc::clone(&repository)),
        create_pet: CreatePet::new(Arc::clone(&repository)),
        get_pet: GetPet::new(repository),
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

fn api_key_directory(config: &KeysConfig) -> Arc<dyn ApiKeyDirectory> {
    match config {
        KeysConfig::Memory { tokens } => Arc::new(MemoryApiKeyDirectory::new(tokens)),
    }
}
