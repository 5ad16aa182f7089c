use std::sync::Arc;

use animal_store_domain::{Pet, PetId};
use thiserror::Error;

use crate::ports::{PetRepository, StorageError};

/// `getPet`: one animal by its id.
#[derive(Clone)]
pub struct GetPet {
    repository: Arc<dyn PetRepository>,
}

/// Why there is no animal.
#[derive(Debug, Error)]
pub enum GetPetError {
    /// No animal has this id.
    #[error("no animal has this id")]
    NotFound,
    /// The repository failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl GetPet {
    /// Looks in this repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// The animal with this id.
    ///
    /// # Errors
    /// [`GetPetError::NotFound`] where there is none, [`GetPetError::Storage`] where the repository fails.
    pub async fn execute(&self, id: PetId) -> Result<Pet, GetPetError> {
        self.repository.find(id).await?.ok_or(GetPetError::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{ports::MockPetRepository, test_support::pet};

    async fn get_seven(answer: Result<Option<Pet>, StorageError>) -> Result<Pet, GetPetError> {
        let id = PetId::new(7).unwrap();
        let mut repository = MockPetRepository::new();
        repository.expect_find().with(eq(id)).once().return_once(|_| answer);
        GetPet::new(Arc::new(repository)).execute(id).await
    }

    #[tokio::test]
    async fn the_animal_of_the_repository_is_returned() {
        assert_eq!(get_seven(Ok(Some(pet(7)))).await.unwrap(), pet(7));
    }

    #[tokio::test]
    async fn an_unknown_id_is_not_found() {
        assert!(matches!(get_seven(Ok(None)).await, Err(GetPetError::NotFound)));
    }

    #[tokio::test]
    async fn a_failure_of_the_repository_is_passed_on() {
        let error = get_seven(Err(StorageError::Overloaded)).await.unwrap_err();
        assert!(matches!(error, GetPetError::Storage(StorageError::Overloaded)));
    }
}
