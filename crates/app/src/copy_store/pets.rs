use std::vec;

use animal_store_domain::PetId;
use sha2::{Digest, Sha256};

use crate::{
    PetDigest,
    ports::{StorageSnapshot, StoreResult, StoredPet},
};

/// Reads the pets of a snapshot one by one, in ascending order of id, and computes their digest. It holds one page.
pub(super) struct Pets<'a> {
    snapshot: &'a dyn StorageSnapshot,
    page_size: usize,
    page: vec::IntoIter<StoredPet>,
    /// Last pet that was read, and the number and the digest of all of them.
    last: Option<PetId>,
    pub(super) count: u64,
    sha256: Sha256,
}

impl<'a> Pets<'a> {
    pub(super) fn new(snapshot: &'a dyn StorageSnapshot, page_size: usize) -> Self {
        Self {
            snapshot,
            page_size,
            page: Vec::new().into_iter(),
            last: None,
            count: 0,
            sha256: Sha256::new(),
        }
    }

    pub(super) async fn next(&mut self) -> StoreResult<Option<StoredPet>> {
        if self.page.len() == 0 {
            self.page = self
                .snapshot
                .pets(self.last, self.page_size)
                .await?
                .into_iter();
        }
        let Some(next) = self.page.next() else {
            return Ok(None);
        };
        self.sha256.update(next.pet.id().get().to_be_bytes());
        self.sha256
            .update(PetDigest::from_pet(next.pet.new_pet()).0);
        self.sha256.update(next.created_at.micros().to_be_bytes());
        self.last = Some(next.pet.id());
        self.count += 1;
        Ok(Some(next))
    }

    /// Returns the SHA-256 digest of the pets that were read, as hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        hex::encode(self.sha256.clone().finalize())
    }
}
