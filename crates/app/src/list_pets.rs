use std::sync::Arc;

use animal_store_domain::{ListQuery, Page};
use thiserror::Error;

use crate::ports::{PetRepository, StorageError};

/// `listPets`: one page of animals.
#[derive(Clone)]
pub struct ListPets {
    repository: Arc<dyn PetRepository>,
}

/// Why there is no page.
#[derive(Debug, Error)]
pub enum ListPetsError {
    /// The repository failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ListPets {
    /// Lists what is in this repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self { repository }
    }

    /// The page that the query asks for.
    ///
    /// # Errors
    /// [`ListPetsError::Storage`] where the repository fails.
    pub async fn execute(&self, query: ListQuery) -> Result<Page, ListPetsError> {
        // One more than the page holds tells whether others follow.
        let at_most = usize::from(query.limit.get()) + 1;
        let pets = self.repository.list(query.status, query.after, at_most).await?;
        Ok(Page::cut(pets, query.limit))
    }
}

#[cfg(test)]
mod tests {
    use animal_store_domain::{PageLimit, PetId, PetStatus};
    use mockall::predicate::eq;

    use super::*;
    use crate::{ports::MockPetRepository, test_support::pet};

    fn repository_with(count: i64) -> MockPetRepository {
        let mut repository = MockPetRepository::new();
        repository.expect_list().return_once(move |_, _, _| Ok((1..=count).map(pet).collect()));
        repository
    }

    async fn page_of_two(repository: MockPetRepository) -> Result<Page, ListPetsError> {
        let query = ListQuery { limit: PageLimit::new(2).unwrap(), ..ListQuery::default() };
        ListPets::new(Arc::new(repository)).execute(query).await
    }

    #[tokio::test]
    async fn the_repository_is_asked_for_one_animal_more_than_the_limit() {
        let query = ListQuery {
            limit: PageLimit::new(100).unwrap(),
            status: Some(PetStatus::Sold),
            after: Some(PetId::new(7).unwrap()),
        };
        let mut repository = MockPetRepository::new();
        repository
            .expect_list()
            .with(eq(query.status), eq(query.after), eq(101))
            .once()
            .return_once(|_, _, _| Ok(Vec::new()));

        let page = ListPets::new(Arc::new(repository)).execute(query).await.unwrap();

        assert_eq!(page, Page { pets: Vec::new(), next: None });
    }

    #[tokio::test]
    async fn a_page_that_others_follow_says_where_the_next_begins() {
        let page = page_of_two(repository_with(3)).await.unwrap();
        assert_eq!(page, Page { pets: vec![pet(1), pet(2)], next: PetId::new(2).ok() });
    }

    #[tokio::test]
    async fn the_last_page_has_no_next() {
        let page = page_of_two(repository_with(2)).await.unwrap();
        assert_eq!(page, Page { pets: vec![pet(1), pet(2)], next: None });
    }

    #[tokio::test]
    async fn a_failure_of_the_repository_is_passed_on() {
        let mut repository = MockPetRepository::new();
        repository.expect_list().return_once(|_, _, _| Err(StorageError::Deadline));

        let error = page_of_two(repository).await.unwrap_err();

        assert!(matches!(error, ListPetsError::Storage(StorageError::Deadline)));
    }
}
