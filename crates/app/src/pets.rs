//! The use cases on pets: the operations of the interface.

use std::sync::Arc;

use animal_store_domain::{ListQuery, Page, Pet, PetId};

use crate::{
    ReadAccess, WriteAccess,
    ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreResult},
};

/// `createPet`: adds a pet.
#[derive(Clone)]
pub struct CreatePet(Arc<dyn PetRepository>);

/// `getPet`: fetches one pet by its id.
#[derive(Clone)]
pub struct GetPet(Arc<dyn PetRepository>);

/// `listPets`: returns one page of pets.
#[derive(Clone)]
pub struct ListPets(Arc<dyn PetRepository>);

impl CreatePet {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self(repository)
    }

    /// Adds a pet and returns it with its id. If an earlier request with the same idempotency key added it, returns
    /// that pet.
    ///
    /// # Errors
    /// See [`AddPetError`].
    pub async fn execute(&self, _: &WriteAccess, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.0.add(request).await
    }
}

impl GetPet {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self(repository)
    }

    /// Returns the pet with this id. An unknown id is `Ok(None)`.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    pub async fn execute(&self, _: &ReadAccess, id: PetId) -> StoreResult<Option<Pet>> {
        self.0.find(id).await
    }
}

impl ListPets {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self(repository)
    }

    /// Returns the page that the query selects.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    pub async fn execute(&self, _: &ReadAccess, query: ListQuery) -> StoreResult<Page> {
        // A pet beyond the limit shows that another page follows.
        let limit = usize::from(query.limit.get()) + 1;
        let pets = self.0.list(query.status, query.after, limit).await?;
        Ok(Page::cut(pets, query.limit))
    }
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{PageLimit, PetStatus};
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ports::MockPetRepository,
        test_support::{api_key, pet},
    };

    fn access() -> ReadAccess {
        ReadAccess::new(&api_key("key")).unwrap()
    }

    #[tokio::test]
    async fn a_pet_is_found_by_its_id() {
        let mut repository = MockPetRepository::new();
        repository
            .expect_find()
            .with(eq(pet(7).id()))
            .once()
            .return_once(|_| Ok(Some(pet(7))));
        let get_pet = GetPet::new(Arc::new(repository));
        let found = get_pet.execute(&access(), pet(7).id()).await;
        assert_eq!(found.unwrap(), Some(pet(7)));
    }

    #[tokio::test]
    async fn a_page_is_cut_out_of_one_pet_more_than_its_limit() {
        let query = ListQuery {
            limit: PageLimit::parse(2).unwrap(),
            status: Some(PetStatus::Sold),
            after: Some(PetId::parse(7).unwrap()),
        };
        let mut repository = MockPetRepository::new();
        repository
            .expect_list()
            .with(eq(query.status), eq(query.after), eq(3))
            .once()
            .return_once(|_, _, _| Ok([8, 9, 10].map(pet).into()));
        let page = ListPets::new(Arc::new(repository))
            .execute(&access(), query)
            .await
            .unwrap();
        assert_eq!(
            page,
            Page {
                pets: vec![pet(8), pet(9)],
                next: PetId::parse(9).ok()
            }
        );
    }
}
