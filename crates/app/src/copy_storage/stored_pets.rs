use std::vec;

use animal_store_domain::PetId;

use crate::{
    ports::{BulkStorageError, StorageSnapshot, StoredPet},
    transfer::PAGE_SIZE,
};

/// The pets of a snapshot one by one, in ascending order of id. It holds one page.
pub(super) struct StoredPets<'a> {
    snapshot: &'a mut dyn StorageSnapshot,
    page: vec::IntoIter<StoredPet>,
    /// Last pet of the page.
    last: Option<PetId>,
    is_last_page: bool,
}

impl<'a> StoredPets<'a> {
    pub(super) fn new(snapshot: &'a mut dyn StorageSnapshot) -> Self {
        Self { snapshot, page: Vec::new().into_iter(), last: None, is_last_page: false }
    }

    pub(super) async fn next(&mut self) -> Result<Option<StoredPet>, BulkStorageError> {
        if self.page.len() == 0 && !self.is_last_page {
            let page = self.snapshot.pets(self.last, PAGE_SIZE).await?;
            self.last = page.last().map(|last| last.pet.id());
            self.is_last_page = page.len() < PAGE_SIZE;
            self.page = page.into_iter();
        }
        Ok(self.page.next())
    }
}
