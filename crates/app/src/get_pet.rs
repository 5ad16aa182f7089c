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

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ports::MockPetRepository,
        test_support::{pet, read_access},
    };

    #[tokio::test]
    async fn the_pet_of_the_repository_is_returned() {
        for found in [Some(pet(7)), None] {
            let (id, expected) = (PetId::parse(7).unwrap(), found.clone());
            let mut repository = MockPetRepository::new();
            repository.expect_find().with(eq(id)).once().return_once(|_| Ok(found));
            assert_eq!(GetPet::new(Arc::new(repository)).execute(&read_access(), id).await.unwrap(), expected);
        }
    }
}
