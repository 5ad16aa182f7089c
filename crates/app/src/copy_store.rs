//! Copies a store into another one: pets with ids and creation times, records of idempotency keys, and API keys.
//!
//! The copy keeps no record of its progress. It compares both sides from the beginning, and adds what the target lacks:
//! after an interruption, or after a first pass beside a running service, the same call continues. A source with data
//! of a newer program, and a target with other pets or without a needed permission, are refused before anything is
//! written. From the first write until both sides were compared at the end, by the number and the digest of their pets,
//! the target has a mark. A target without pets has it from the beginning, because it could be taken for a complete
//! copy.

mod api_keys;
mod error;
mod pets;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, sync::Arc};

use animal_store_domain::PetId;

pub use self::{
    api_keys::{ApiKeyStores, ImportedApiKeys},
    error::CopyError,
};
use self::{error::target, pets::Pets};
use crate::ports::{ApiKeyStore, BulkStorage, StorageSnapshot};

/// Number of pets or records in a transaction: large enough that a commit is cheap, small enough for the memory.
const PAGE_SIZE: usize = 2_500;

/// Copies one store into another one. Dropping the call stops it; what was added stays.
pub struct CopyStore {
    from: Arc<dyn BulkStorage>,
    to: Arc<dyn BulkStorage>,
    api_keys: Option<ApiKeyStores>,
    page_size: usize,
}

/// Result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySummary {
    /// Number of pets in the source.
    pub pets: u64,
    /// Number of pets that this call added to the target.
    pub added: u64,
    /// SHA-256 digest of the pets on both sides, as hexadecimal digits.
    pub digest: String,
    /// Number of records of idempotency keys in the source.
    pub idempotency_records: u64,
    /// `None`: no API keys were copied.
    pub api_keys: Option<ImportedApiKeys>,
}

impl CopyStore {
    /// Creates the use case over the source and the target, and over the stores of API keys if these are to be copied.
    pub fn new(
        from: Arc<dyn BulkStorage>,
        to: Arc<dyn BulkStorage>,
        api_keys: Option<ApiKeyStores>,
    ) -> Self {
        Self {
            from,
            to,
            api_keys,
            page_size: PAGE_SIZE,
        }
    }

    /// Returns the target of the API keys, if they are copied.
    pub fn api_key_target(&self) -> Option<&dyn ApiKeyStore> {
        self.api_keys.as_ref().map(|stores| &*stores.to)
    }

    /// Adds what the target lacks of the present state of the source, and compares both sides.
    ///
    /// # Errors
    /// See [`CopyError`].
    pub async fn execute(&self) -> Result<CopySummary, CopyError> {
        self.to.check_writable().await.map_err(target)?;
        if let Some(api_keys) = self.api_key_target() {
            api_keys.check_writable().await.map_err(target)?;
        }
        let from = self.from.snapshot().await.map_err(CopyError::Source)?;
        // Compared after the snapshot was taken: what a later migration adds cannot be in the snapshot.
        let newer = self.from.newer_migrations().await;
        let newer = newer.map_err(CopyError::Source)?;
        if !newer.is_empty() {
            return Err(CopyError::NewerSource(newer.join(", ")));
        }
        let last_id = from.last_id().await.map_err(CopyError::Source)?;
        let mut source = Pets::new(&*from, self.page_size);
        let last_copied = self.begin(&mut source).await?;
        if let Some(last_id) = last_id {
            self.to.skip_ids(last_id).await.map_err(target)?;
        }
        let added = self.add_pets(&*from, last_copied).await?;
        let idempotency_records = self.add_idempotency_records(&*from).await?;
        let api_keys = match &self.api_keys {
            Some(stores) => Some(stores.copy().await?),
            None => None,
        };
        let snapshot = self.to.snapshot().await.map_err(target)?;
        let mut copied = Pets::new(&*snapshot, self.page_size);
        while copied.next().await.map_err(target)?.is_some() {}
        let digest = source.digest();
        if digest != copied.digest() {
            return Err(CopyError::Changed);
        }
        self.to.mark_copy(false).await.map_err(target)?;
        Ok(CopySummary {
            pets: source.count,
            added,
            digest,
            idempotency_records,
            api_keys,
        })
    }

    /// Compares the target with the source, and marks it. Returns the last pet that the target has.
    async fn begin(&self, source: &mut Pets<'_>) -> Result<Option<PetId>, CopyError> {
        let snapshot = self.to.snapshot().await.map_err(target)?;
        let is_empty = snapshot.pets(None, 1).await.map_err(target)?.is_empty();
        drop(snapshot);
        if !is_empty {
            let last_copied = self.check(source).await?;
            self.to.mark_copy(true).await.map_err(target)?;
            return Ok(last_copied);
        }
        self.to.mark_copy(true).await.map_err(target)?;
        let checked = self.check(source).await;
        if let Err(CopyError::OtherPets(_)) = checked {
            // Another process has added it since.
            self.to.mark_copy(false).await.map_err(target)?;
        }
        checked
    }

    /// Compares the target with the source. Returns the last pet that the target has.
    async fn check(&self, source: &mut Pets<'_>) -> Result<Option<PetId>, CopyError> {
        let snapshot = self.to.snapshot().await.map_err(target)?;
        let mut pets = Pets::new(&*snapshot, self.page_size);
        let mut last_copied = None;
        let mut copied = pets.next().await.map_err(target)?;
        while let Some(pet) = source.next().await.map_err(CopyError::Source)? {
            match &copied {
                Some(same) if *same == pet => {
                    last_copied = Some(pet.pet.id());
                    copied = pets.next().await.map_err(target)?;
                }
                Some(other) if other.pet.id() <= pet.pet.id() => {
                    return Err(CopyError::OtherPets(other.pet.id()));
                }
                _ => {}
            }
        }
        match copied {
            Some(other) => Err(CopyError::OtherPets(other.pet.id())),
            None => Ok(last_copied),
        }
    }

    /// Adds the pets that the target lacks, a page in each transaction. Ids are committed out of order, so pages up to
    /// the last pet of the target can have gaps. Returns the number of pets that were added.
    async fn add_pets(
        &self,
        from: &dyn StorageSnapshot,
        last_copied: Option<PetId>,
    ) -> Result<u64, CopyError> {
        let mut after = None;
        let mut added = 0;
        loop {
            let page = from.pets(after, self.page_size).await;
            let mut pets = page.map_err(CopyError::Source)?;
            let Some(last) = pets.last() else {
                return Ok(added);
            };
            let last = last.pet.id();
            let may_have_gaps =
                last_copied.is_some_and(|copied| after.is_none_or(|after| after < copied));
            if may_have_gaps {
                let snapshot = self.to.snapshot().await.map_err(target)?;
                let copied = snapshot.pets(after, pets.len()).await.map_err(target)?;
                let copied: HashSet<_> = copied.iter().map(|copied| copied.pet.id()).collect();
                pets.retain(|pet| !copied.contains(&pet.pet.id()));
            }
            if !pets.is_empty() {
                added += pets.len() as u64;
                if !self.to.add_pets(pets).await.map_err(target)? {
                    return Err(CopyError::Changed);
                }
            }
            after = Some(last);
        }
    }

    async fn add_idempotency_records(&self, from: &dyn StorageSnapshot) -> Result<u64, CopyError> {
        let mut after = None;
        let mut done = 0;
        loop {
            let page = from.idempotency_records(after, self.page_size).await;
            let records = page.map_err(CopyError::Source)?;
            let Some(last) = records.last() else {
                return Ok(done);
            };
            after = Some(last.key.clone());
            done += records.len() as u64;
            let added = self.to.add_idempotency_records(records).await;
            added.map_err(target)?;
        }
    }
}
