//! The contract of `PetRepository`, kept in memory.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::ports::PetRepository;

async fn setup() -> (Arc<dyn PetRepository>, ()) {
    with_retention(Duration::from_hours(24)).await
}

async fn with_retention(retention: Duration) -> (Arc<dyn PetRepository>, ()) {
    (Arc::new(MemoryPetRepository::new(retention)), ())
}

animal_store_app::pet_repository_contract!(setup);
animal_store_app::idempotency_contract!(with_retention);
