use std::sync::Arc;

use crate::{
    WriteAccess,
    ports::{AddPet, AddPetError, AddedPet, PetRepository},
};

/// `createPet`: adds a pet.
#[derive(Clone)]
pub struct CreatePet {
    repository: Arc<dyn PetRepository>,
}

impl CreatePet {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// Adds a pet and returns it with its id. If an earlier request with the same idempotency key added it, returns
    /// that pet.
    ///
    /// # Errors
    /// See [`AddPetError`].
    pub async fn execute(&self, _: &WriteAccess, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.repository.add(request).await
    }
}
