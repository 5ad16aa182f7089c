//! Copies a storage into another one.
//!
//! The copy keeps no record of its progress. It adds pets in order of id, so after an interruption the target has the
//! first pets of the source, and the same command adds the others. A target with other pets is refused before anything
//! is written. At the end, both sides are read again and compared.

mod stored_pets;
#[cfg(test)]
mod tests;

use std::{ops::ControlFlow, sync::Arc};

use animal_store_domain::PetId;

use self::stored_pets::StoredPets;
use crate::{
    PetsDigest, PetsHasher, TransferError, TransferObserver, TransferPass,
    ports::{AddedBulkPet, BulkPet, BulkStorage, BulkStorageError, PetBatch, StorageSnapshot, StoredPet},
    transfer::PAGE_SIZE,
};

/// Copies the pets of a storage, with ids and creation times, and its records of idempotency keys to another storage.
/// It also restores a backup.
pub struct CopyStorage {
    from: Arc<dyn BulkStorage>,
    to: Arc<dyn BulkStorage>,
    verifies: bool,
}

/// Result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopySummary {
    /// Number of pets in the source.
    pub pets: u64,
    /// Number of pets that this call added to the target.
    pub added: u64,
    /// Number of records of idempotency keys in the source.
    pub idempotency_records: u64,
    /// Digest of the pets on both sides. `None`: they were not compared.
    pub digest: Option<PetsDigest>,
    /// Whether the observer stopped the copy before its end.
    pub stopped: bool,
}

/// Result of comparing the target with the source.
struct Check {
    /// Number of pets in the source.
    pets: u64,
    /// The target has every pet of the source up to this one.
    complete_to: Option<PetId>,
}

impl CopyStorage {
    /// Creates the use case over both storages.
    pub fn new(from: Arc<dyn BulkStorage>, to: Arc<dyn BulkStorage>) -> Self {
        Self { from, to, verifies: true }
    }

    /// The copy does not compare both sides at its end.
    #[must_use]
    pub fn without_verification(self) -> Self {
        Self { verifies: false, ..self }
    }

    /// Adds what is missing, and compares both sides. May be repeated after every error and after every stop.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub async fn execute(&self, observer: &mut dyn TransferObserver) -> Result<CopySummary, TransferError> {
        let mut summary = CopySummary { pets: 0, added: 0, idempotency_records: 0, digest: None, stopped: true };
        let mut source = self.from.snapshot().await.map_err(TransferError::Source)?;
        let ControlFlow::Continue(check) = self.check(&mut *source, observer).await? else { return Ok(summary) };
        summary.pets = check.pets;
        if self.add_pets(&mut *source, &check, &mut summary.added, observer).await?.is_break() {
            return Ok(summary);
        }
        let records = &mut summary.idempotency_records;
        if self.add_idempotency_records(&mut *source, check.pets, records, observer).await?.is_break() {
            return Ok(summary);
        }
        drop(source);
        if self.verifies {
            let verified = self.verify(check.pets, observer).await?;
            let ControlFlow::Continue(digest) = verified else { return Ok(summary) };
            summary.digest = Some(digest);
        }
        Ok(CopySummary { stopped: false, ..summary })
    }

    /// Compares the target with the source before anything is written.
    async fn check(
        &self,
        source: &mut dyn StorageSnapshot,
        observer: &mut dyn TransferObserver,
    ) -> Result<ControlFlow<(), Check>, TransferError> {
        let mut target = self.to.snapshot().await.map_err(TransferError::Target)?;
        let mut target = StoredPets::new(&mut *target);
        let mut source = StoredPets::new(source);
        let mut check = Check { pets: 0, complete_to: None };
        let mut is_complete = true;
        observer.started(TransferPass::Check, None);
        let mut copied = target.next().await.map_err(TransferError::Target)?;
        while let Some(pet) = source.next().await.map_err(TransferError::Source)? {
            match copied {
                Some(same) if same == pet => {
                    copied = target.next().await.map_err(TransferError::Target)?;
                    if is_complete {
                        check.complete_to = Some(pet.pet.id());
                    }
                }
                Some(other) if other.pet.id() <= pet.pet.id() => return Err(TransferError::OtherPets(other.pet.id())),
                greater => {
                    copied = greater;
                    is_complete = false;
                }
            }
            check.pets += 1;
            if check.pets.is_multiple_of(PAGE_SIZE as u64) && observer.advanced(check.pets).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match copied {
            Some(other) => Err(TransferError::OtherPets(other.pet.id())),
            None => Ok(ControlFlow::Continue(check)),
        }
    }

    /// Adds the pets after the last one that the target has. Some of them may exist, too.
    async fn add_pets(
        &self,
        source: &mut dyn StorageSnapshot,
        check: &Check,
        added: &mut u64,
        observer: &mut dyn TransferObserver,
    ) -> Result<ControlFlow<()>, TransferError> {
        let mut after = check.complete_to;
        let mut done = 0;
        observer.started(TransferPass::Transfer, Some(check.pets));
        loop {
            let pets = source.pets(after, PAGE_SIZE).await.map_err(TransferError::Source)?;
            let Some(last) = pets.last() else { return Ok(ControlFlow::Continue(())) };
            after = Some(last.pet.id());
            done += pets.len() as u64;
            let pets = pets.into_iter().map(bulk_pet).collect();
            let outcomes = self.to.add_pets(PetBatch { pets, refuse_taken_ids: true, step: None }).await;
            let outcomes = outcomes.map_err(|error| match error {
                BulkStorageError::IdTaken(id) => TransferError::OtherPets(id),
                error => TransferError::Target(error),
            })?;
            *added += outcomes.iter().filter(|outcome| matches!(outcome, AddedBulkPet::Added(_))).count() as u64;
            if observer.advanced(done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Adds the records after all pets.
    async fn add_idempotency_records(
        &self,
        source: &mut dyn StorageSnapshot,
        pets: u64,
        added: &mut u64,
        observer: &mut dyn TransferObserver,
    ) -> Result<ControlFlow<()>, TransferError> {
        let mut after = None;
        loop {
            let records = source.idempotency_records(after, PAGE_SIZE).await.map_err(TransferError::Source)?;
            let Some(last) = records.last() else { return Ok(ControlFlow::Continue(())) };
            after = Some(last.key.clone());
            let count = records.len() as u64;
            self.to.add_idempotency_records(records).await.map_err(TransferError::Target)?;
            *added += count;
            if observer.advanced(pets).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Compares both sides as they are now.
    async fn verify(
        &self,
        pets: u64,
        observer: &mut dyn TransferObserver,
    ) -> Result<ControlFlow<(), PetsDigest>, TransferError> {
        let mut source = self.from.snapshot().await.map_err(TransferError::Source)?;
        let source = hash(&mut *source, pets, observer).await.map_err(TransferError::Source)?;
        let ControlFlow::Continue(source) = source else { return Ok(ControlFlow::Break(())) };
        let mut target = self.to.snapshot().await.map_err(TransferError::Target)?;
        let target = hash(&mut *target, pets, observer).await.map_err(TransferError::Target)?;
        let ControlFlow::Continue(target) = target else { return Ok(ControlFlow::Break(())) };
        if source.digest() == target.digest() {
            Ok(ControlFlow::Continue(source.digest()))
        } else {
            Err(TransferError::Differs { source_pets: source.pets(), target_pets: target.pets() })
        }
    }
}

fn bulk_pet(stored: StoredPet) -> BulkPet {
    let StoredPet { pet, created_at } = stored;
    BulkPet { id: Some(pet.id()), pet: pet.new_pet().clone(), created_at: Some(created_at) }
}

async fn hash(
    snapshot: &mut dyn StorageSnapshot,
    pets: u64,
    observer: &mut dyn TransferObserver,
) -> Result<ControlFlow<(), PetsHasher>, BulkStorageError> {
    let mut hasher = PetsHasher::default();
    let mut after = None;
    observer.started(TransferPass::Verification, Some(pets));
    loop {
        let pets = snapshot.pets(after, PAGE_SIZE).await?;
        let Some(last) = pets.last() else { return Ok(ControlFlow::Continue(hasher)) };
        after = Some(last.pet.id());
        for pet in &pets {
            hasher.add(pet);
        }
        if observer.advanced(hasher.pets()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}
