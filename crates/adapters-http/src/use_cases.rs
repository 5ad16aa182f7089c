use std::sync::Arc;

use animal_store_app::{Authenticate, CreatePet, GetPet, ListPets, ports::ApiKeyUses};

/// The use cases that the handlers call. Each worker has its own.
#[derive(Clone)]
pub struct UseCases {
    /// Checks the API key of every request under `/v1`.
    pub authenticate: Authenticate,
    /// `listPets`
    pub list_pets: ListPets,
    /// `createPet`
    pub create_pet: CreatePet,
    /// `getPet`. `None`: the operation was removed.
    pub get_pet: Option<GetPet>,
    /// Records which API keys use `getPet`, so that an operator finds the clients that still have to change.
    pub uses: Arc<dyn ApiKeyUses>,
}
