use animal_store_app::{Authenticate, CreatePet, GetPet, ListPets};

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
}
