use animal_store_app::{Authenticate, CreatePet, GetPet, ListPets, NoteDeprecatedUse};

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
    /// Called by each operation that is deprecated.
    pub note_deprecated_use: NoteDeprecatedUse,
}
