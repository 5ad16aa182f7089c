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

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ApiKeyId, IdempotencyKey,
        ports::MockPetRepository,
        test_support::{new_pet, pet, write_access},
    };

    async fn create(added: Result<AddedPet, AddPetError>) -> Result<AddedPet, AddPetError> {
        let key = IdempotencyKey::new(ApiKeyId::new("key"), "order 1");
        let request = AddPet { pet: new_pet(), idempotency_key: Some(key) };
        let mut repository = MockPetRepository::new();
        repository.expect_add().with(eq(request.clone())).once().return_once(|_| added);
        CreatePet::new(Arc::new(repository)).execute(&write_access(), request).await
    }

    #[tokio::test]
    async fn the_pet_is_returned_as_the_repository_stored_it() {
        for replayed in [false, true] {
            let added = AddedPet { pet: pet(7), replayed };
            assert_eq!(create(Ok(added.clone())).await.unwrap(), added);
        }
    }
}
