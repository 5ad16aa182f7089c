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
        test_support::{api_key, pet},
    };

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
        let access = ReadAccess::new(&api_key("key")).unwrap();
        let page = ListPets::new(Arc::new(repository)).execute(&access, query).await.unwrap();
        assert_eq!(page, Page { pets: vec![pet(8), pet(9)], next: PetId::parse(9).ok() });
    }
}
