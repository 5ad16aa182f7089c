use std::sync::Arc;

use animal_store_domain::NewPet;
use thiserror::Error;

use crate::{
    IdempotencyKey,
    ports::{AddError, AddPet, AddedPet, Cause, PetRepository, StorageError},
};

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
    /// It was not added by this request: an earlier one with the same idempotency key is still under way.
    #[error("the first request with this idempotency key is still under way")]
    IdempotencyConflict,
    /// It was not added: the idempotency key belongs to another animal.
    #[error("another animal was added with this idempotency key")]
    IdempotencyMismatch,
    /// It may have been added: sending it again without an idempotency key may add a second one.
    #[error("it is unknown whether the animal was stored")]
    OutcomeUnknown(#[source] Cause),
}

impl CreatePet {
    /// Adds to this repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// Adds the animal and returns it with its id; or returns the one that was added with the same idempotency key.
    ///
    /// # Errors
    /// [`CreatePetError::NotStored`] or [`CreatePetError::OutcomeUnknown`] where the repository fails;
    /// [`CreatePetError::IdempotencyConflict`] or [`CreatePetError::IdempotencyMismatch`] where it must not add.
    pub async fn execute(
        &self,
        pet: NewPet,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<AddedPet, CreatePetError> {
        self.repository.add(AddPet { pet, idempotency_key }).await.map_err(|error| match error {
            AddError::NotStored(reason) => CreatePetError::NotStored(reason),
            AddError::IdempotencyConflict => CreatePetError::IdempotencyConflict,
            AddError::IdempotencyMismatch => CreatePetError::IdempotencyMismatch,
            AddError::OutcomeUnknown(cause) => CreatePetError::OutcomeUnknown(cause),
        })
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ApiKeyId,
        ports::MockPetRepository,
        test_support::{new_pet, pet},
    };

    async fn create(answer: Result<AddedPet, AddError>) -> Result<AddedPet, CreatePetError> {
        let key = Some(IdempotencyKey::new(ApiKeyId::new("key"), "order 1"));
        let request = AddPet { pet: new_pet(), idempotency_key: key.clone() };
        let mut repository = MockPetRepository::new();
        repository.expect_add().with(eq(request)).once().return_once(|_| answer);
        CreatePet::new(Arc::new(repository)).execute(new_pet(), key).await
    }

    #[tokio::test]
    async fn the_animal_is_returned_as_the_repository_stored_it() {
        for replayed in [false, true] {
            let added = AddedPet { pet: pet(7), replayed };
            assert_eq!(create(Ok(added.clone())).await.unwrap(), added);
        }
    }

    #[tokio::test]
    async fn what_was_not_stored_is_told_apart_from_what_may_have_been() {
        let error = create(Err(StorageError::Deadline.into())).await.unwrap_err();
        assert!(matches!(error, CreatePetError::NotStored(StorageError::Deadline)));

        let error = create(Err(AddError::OutcomeUnknown("connection lost".into()))).await.unwrap_err();
        assert!(matches!(error, CreatePetError::OutcomeUnknown(_)));
    }

    #[tokio::test]
    async fn a_key_that_is_taken_or_busy_is_told_apart() {
        let error = create(Err(AddError::IdempotencyConflict)).await.unwrap_err();
        assert!(matches!(error, CreatePetError::IdempotencyConflict));

        let error = create(Err(AddError::IdempotencyMismatch)).await.unwrap_err();
        assert!(matches!(error, CreatePetError::IdempotencyMismatch));
    }
}
