use std::sync::Arc;

use animal_store_domain::{ListQuery, Page};

use crate::{
    ReadAccess,
    ports::{PetRepository, StoreFailure},
};

/// `listPets`: returns one page of pets.
#[derive(Clone)]
pub struct ListPets {
    repository: Arc<dyn PetRepository>,
}

impl ListPets {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// Returns the page that the query selects.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    pub async fn execute(&self, _: &ReadAccess, query: ListQuery) -> Result<Page, StoreFailure> {
        // A pet beyond the limit shows that another page follows.
        let limit = usize::from(query.limit.get()) + 1;
        let pets = self.repository.list(query.status, query.after, limit).await?;
        Ok(Page::cut(pets, query.limit))
    }
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{PageLimit, PetId, PetStatus};
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ports::MockPetRepository,
        test_support::{pet, read_access},
    };

    fn repository_with(count: i64) -> MockPetRepository {
        let mut repository = MockPetRepository::new();
        repository.expect_list().return_once(move |_, _, _| Ok((1..=count).map(pet).collect()));
        repository
    }

    async fn page_of_two(repository: MockPetRepository) -> Result<Page, StoreFailure> {
        let query = ListQuery { limit: PageLimit::parse(2).unwrap(), ..ListQuery::default() };
        ListPets::new(Arc::new(repository)).execute(&read_access(), query).await
    }

    #[tokio::test]
    async fn the_repository_is_queried_for_one_pet_more_than_the_limit() {
        let query = ListQuery {
            limit: PageLimit::parse(100).unwrap(),
            status: Some(PetStatus::Sold),
            after: Some(PetId::parse(7).unwrap()),
        };
        let mut repository = MockPetRepository::new();
        repository
            .expect_list()
            .with(eq(query.status), eq(query.after), eq(101))
            .once()
            .return_once(|_, _, _| Ok(Vec::new()));
        let page = ListPets::new(Arc::new(repository)).execute(&read_access(), query).await.unwrap();
        assert_eq!(page, Page { pets: Vec::new(), next: None });
    }

    #[tokio::test]
    async fn a_page_before_another_has_the_position_of_the_next() {
        let page = page_of_two(repository_with(3)).await.unwrap();
        assert_eq!(page, Page { pets: vec![pet(1), pet(2)], next: PetId::parse(2).ok() });
    }
}
