//! The contract of `PetRepository`.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::ports::PetRepository;

async fn setup(idempotency_retention: Duration) -> (Arc<dyn PetRepository>, ()) {
    (
        Arc::new(MemoryPetRepository::new(idempotency_retention)),
        (),
    )
}

animal_store_app::pet_repository_contract!(setup);
