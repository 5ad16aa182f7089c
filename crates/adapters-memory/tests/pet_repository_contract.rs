//! The contract of `PetRepository`, kept in memory.

use std::sync::Arc;

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::ports::PetRepository;

async fn setup() -> (Arc<dyn PetRepository>, ()) {
    (Arc::new(MemoryPetRepository::new()), ())
}

animal_store_app::pet_repository_contract!(setup);
