//! The use case of an export: reads every pet.

use std::sync::Arc;

use animal_store_domain::{Page, Pet, PetId};

use crate::ports::{PetRepository, StoreResult};

/// Number of pets in a page.
const PAGE_SIZE: usize = 1_000;

/// Reads every pet in ascending order of id, page by page. The operator of the storage runs it, so it needs no API key.
pub struct ExportPets {
    repository: Arc<dyn PetRepository>,
    page_size: usize,
}

impl ExportPets {
    /// Creates the use case over a repository.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        Self {
            repository,
            page_size: PAGE_SIZE,
        }
    }

    /// Returns the page after this pet. `None`: the first page.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    pub async fn execute(&self, after: Option<PetId>) -> StoreResult<Page> {
        let pets = self.repository.list(None, after, self.page_size).await?;
        let is_last = pets.len() < self.page_size;
        let next = pets.last().map(Pet::id).filter(|_| !is_last);
        Ok(Page { pets, next })
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{ports::MockPetRepository, test_support::pet};

    /// Exports pages of two pets at most. The repository has the pets with these ids after those.
    async fn export(lists: Vec<(Option<i64>, Vec<i64>)>) -> Vec<Pet> {
        let mut repository = MockPetRepository::new();
        for (after, ids) in lists {
            let after = after.map(|id| PetId::parse(id).unwrap());
            repository
                .expect_list()
                .with(eq(None), eq(after), eq(2))
                .return_once(|_, _, _| Ok(ids.into_iter().map(pet).collect()));
        }
        let export = ExportPets {
            repository: Arc::new(repository),
            page_size: 2,
        };
        let mut read = Vec::new();
        let mut after = None;
        loop {
            let page = export.execute(after).await.unwrap();
            read.extend(page.pets);
            after = page.next;
            if after.is_none() {
                return read;
            }
        }
    }

    #[tokio::test]
    async fn the_pages_end_with_one_that_is_not_full() {
        let read = export(vec![(None, vec![1, 3]), (Some(3), vec![4])]).await;
        assert_eq!(read, [1, 3, 4].map(pet));
        let read = export(vec![(None, vec![1, 3]), (Some(3), vec![])]).await;
        assert_eq!(read, [1, 3].map(pet));
    }
}
