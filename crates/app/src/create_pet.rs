use std::sync::Arc;

use animal_store_domain::{NewPet, Pet};
use thiserror::Error;

use crate::ports::{AddError, AddPet, Cause, PetRepository, StorageError};

/// `createPet`: adds an animal.
#[derive(Clone)]
pub struct CreatePet {
    repository: Arc<dyn PetRepository>,
}

/// Why no animal is returned.
#[derive(Debug, Error)]
pub enum CreatePetError {
    /// It was not added and never will be: the client may send it again.
    #[error("the animal was not stored")]
    NotStored(#[source] StorageError),
    /// It may have been added: sending it again may add a second one.
    #[error("it is unknown whether the animal was stored")]
    OutcomeUnknown(#[source] Cause),
}

impl CreatePet {
    /// Adds to this repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// Adds the animal and returns it with its id.
    ///
    /// # Errors
    /// [`CreatePetError::NotStored`] or [`CreatePetError::OutcomeUnknown`] where the repository fails.
    pub async fn execute(&self, pet: NewPet) -> Result<Pet, CreatePetError> {
        self.repository.add(AddPet { pet }).await.map_err(|error| match error {
            AddError::NotStored(reason) => CreatePetError::NotStored(reason),
            AddError::OutcomeUnknown(cause) => CreatePetError::OutcomeUnknown(cause),
        })
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ports::MockPetRepository,
        test_support::{new_pet, pet},
    };

    async fn create(answer: Result<Pet, AddError>) -> Result<Pet, CreatePetError> {
        let mut repository = MockPetRepository::new();
        repository.expect_add().with(eq(AddPet { pet: new_pet() })).once().return_once(|_| answer);
        CreatePet::new(Arc::new(repository)).execute(new_pet()).await
    }

    #[tokio::test]
    async fn the_animal_is_returned_as_the_repository_stored_it() {
        assert_eq!(create(Ok(pet(7))).await.unwrap(), pet(7));
    }

    #[tokio::test]
    async fn what_was_not_stored_is_told_apart_from_what_may_have_been() {
        let error = create(Err(StorageError::Deadline.into())).await.unwrap_err();
        assert!(matches!(error, CreatePetError::NotStored(StorageError::Deadline)));

        let error = create(Err(AddError::OutcomeUnknown("connection lost".into()))).await.unwrap_err();
        assert!(matches!(error, CreatePetError::OutcomeUnknown(_)));
    }
}
