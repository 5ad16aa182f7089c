//! The use cases that the handlers call.

use std::sync::Arc;

use animal_store_app::{
    Authenticate, CreatePet, GetPet, ListPets,
    ports::{ApiKeyDirectory, ApiKeyUses, PetRepository},
};

/// The use cases that the handlers call. Each worker has its own.
#[derive(Clone)]
pub struct UseCases {
    /// Checks the API key of every request under `/v1`.
    pub authenticate: Authenticate,
    /// `listPets`
    pub list_pets: ListPets,
    /// `createPet`
    pub create_pet: CreatePet,
    /// `getPet`
    pub get_pet: GetPet,
    /// Records which API keys use `getPet`, so that an operator finds the clients that still have to change.
    pub uses: Arc<dyn ApiKeyUses>,
}

impl UseCases {
    /// Creates all use cases.
    pub fn new(
        pets: Arc<dyn PetRepository>,
        api_keys: Arc<dyn ApiKeyDirectory>,
        uses: Arc<dyn ApiKeyUses>,
    ) -> Self {
        Self {
            authenticate: Authenticate::new(api_keys, Arc::clone(&uses)),
            list_pets: ListPets::new(Arc::clone(&pets)),
            create_pet: CreatePet::new(Arc::clone(&pets)),
            get_pet: GetPet::new(pets),
            uses,
        }
    }
}
