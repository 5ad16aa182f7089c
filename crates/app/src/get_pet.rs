use std::sync::Arc;

use animal_store_domain::{Pet, PetId};
use thiserror::Error;

use crate::{
    ReadAccess,
    ports::{PetRepository, StoreFailure},
};

/// `getPet`: fetches one pet by its id.
#[derive(Clone)]
pub struct GetPet {
    repository: Arc<dyn PetRepository>,
}

/// The pet cannot be returned.
#[derive(Debug, Error)]
pub enum GetPetError {
    /// No pet has this id.
    #[error("no pet has this id")]
    NotFound,
    /// The repository failed.
    #[error(transparent)]
    Storage(#[from] StoreFailure),
}

impl GetPet {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// Returns the pet with this id.
    ///
    /// # Errors
    /// [`GetPetError::NotFound`] if no pet has the id, [`GetPetError::Storage`] if the repository failed.
    pub async fn execute(&self, _: &ReadAccess, id: PetId) -> Result<Pet, GetPetError> {
        self.repository.find(id).await?.ok_or(GetPetError::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ports::MockPetRepository,
        test_support::{pet, read_access},
    };

    async fn get(found: Result<Option<Pet>, StoreFailure>) -> Result<Pet, GetPetError> {
        let id = PetId::parse(7).unwrap();
        let mut repository = MockPetRepository::new();
        repository.expect_find().with(eq(id)).once().return_once(|_| found);
        GetPet::new(Arc::new(repository)).execute(&read_access(), id).await
    }

    #[tokio::test]
    async fn the_pet_of_the_repository_is_returned() {
        assert_eq!(get(Ok(Some(pet(7)))).await.unwrap(), pet(7));
    }

    #[tokio::test]
    async fn an_unknown_id_is_not_found() {
        assert!(matches!(get(Ok(None)).await, Err(GetPetError::NotFound)));
    }
}
