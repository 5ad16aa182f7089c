use std::sync::Arc;

use animal_store_domain::{Pet, PetId};

use crate::{
    ReadAccess,
    ports::{PetRepository, StoreFailure},
};

/// `getPet`: fetches one pet by its id.
#[derive(Clone)]
pub struct GetPet {
    repository: Arc<dyn PetRepository>,
}

impl GetPet {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// Returns the pet with this id. An unknown id is `Ok(None)`.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    pub async fn execute(&self, _: &ReadAccess, id: PetId) -> Result<Option<Pet>, StoreFailure> {
        self.repository.find(id).await
    }
}
