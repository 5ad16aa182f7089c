//! Copies a store into another one: pets with ids and creation times, records of idempotency keys, and API keys.
//!
//! The copy keeps no record of its progress. It compares both sides from the beginning, and adds what the target lacks:
//! after an interruption, or after a first pass beside a running service, the same call continues. A target with other
//! pets, or without a permission that is needed, is refused before anything is written. At the end the number and the
//! digest of the pets in the target are compared with those of the source.

#[cfg(test)]
mod tests;

use std::{collections::HashSet, fmt, sync::Arc, vec};

use animal_store_domain::PetId;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::{
    ApiKeyChange, ApiKeyId, PetDigest,
    ports::{ApiKeyChangeError, ApiKeyStore, BulkStorage, StorageSnapshot, StoreFailure, StoredPet},
};

/// Number of pets or records in a transaction: large enough that a commit is cheap, small enough for the memory.
const PAGE_SIZE: usize = 2_500;

/// Copies one store into another one. Dropping the call stops it; what was added stays.
pub struct CopyStore {
    from: Arc<dyn StorageSnapshot>,
    to: Arc<dyn BulkStorage>,
    api_keys: Option<(Arc<dyn ApiKeyStore>, Arc<dyn ApiKeyStore>)>,
    page_size: usize,
}

/// A part of a copy, for a report of its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyPass {
    /// Compares the target with the source, before anything is written.
    Check,
    /// Adds the pets that the target lacks.
    Transfer,
    /// Reads the pets of the target again.
    Verification,
}

/// Result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySummary {
    /// Number of pets in the source.
    pub pets: u64,
    /// Number of pets that this call added to the target.
    pub added: u64,
    /// Digest of the pets on both sides.
    pub digest: PetsDigest,
    /// Number of records of idempotency keys in the source.
    pub idempotency_records: u64,
    /// `None`: no API keys were copied.
    pub api_keys: Option<ImportedApiKeys>,
}

/// The API keys of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedApiKeys {
    /// Number of tokens that this call added to the target.
    pub added: usize,
    /// Keys of the target that the source does not have, in the order of their ids.
    pub others: Vec<ApiKeyId>,
}

/// The copy failed. After every error the same call may be repeated.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The source failed.
    #[error("the source cannot be read")]
    Source(#[source] StoreFailure),
    /// The target failed.
    #[error("the target cannot be used")]
    Target(#[source] StoreFailure),
    /// The API keys of the source cannot be read.
    #[error("the API keys of the source cannot be read")]
    SourceApiKeys(#[source] StoreFailure),
    /// The API keys cannot be added to the target.
    #[error("the API keys cannot be added to the target")]
    TargetApiKeys(#[source] ApiKeyChangeError),
    /// The target has a pet that the source does not have, or another one with the same id. Nothing was written.
    #[error("the target contains other pets, for example the one with the id {}: choose an empty target", .0.get())]
    OtherPets(PetId),
    /// The target got a pet of another writer during the copy.
    #[error("the target was changed during the copy: stop what writes to it, and repeat the command")]
    TargetChanged,
    /// Both sides differ after the copy.
    #[error(
        "the target has {target} pets instead of {pets} after the copy, or one of them was changed: stop the services \
         that use it, and repeat the command"
    )]
    Differs {
        /// Number of pets in the source.
        pets: u64,
        /// Number of pets in the target.
        target: u64,
    },
}

impl CopyStore {
    /// Creates the use case over a view of the source and the target, and over the stores of API keys if these are to
    /// be copied.
    pub fn new(
        from: Arc<dyn StorageSnapshot>,
        to: Arc<dyn BulkStorage>,
        api_keys: Option<(Arc<dyn ApiKeyStore>, Arc<dyn ApiKeyStore>)>,
    ) -> Self {
        Self { from, to, api_keys, page_size: PAGE_SIZE }
    }

    /// Adds what is missing and compares both sides. `progress` gets the number of pets of a pass that are done.
    ///
    /// # Errors
    /// See [`CopyError`].
    pub async fn execute(&self, progress: &mut (dyn FnMut(CopyPass, u64) + Send)) -> Result<CopySummary, CopyError> {
        self.to.check_writable().await.map_err(CopyError::Target)?;
        if let Some((_, to)) = &self.api_keys {
            to.check_writable().await.map_err(|error| CopyError::TargetApiKeys(error.into()))?;
        }
        let (source, last_copied) = self.check(&mut |pets| progress(CopyPass::Check, pets)).await?;
        let added = self.add_pets(last_copied, &mut |pets| progress(CopyPass::Transfer, pets)).await?;
        let idempotency_records = self.add_idempotency_records().await?;
        let api_keys = match &self.api_keys {
            Some((from, to)) => Some(copy_api_keys(&**from, &**to).await?),
            None => None,
        };
        let target = self.hash_target(&mut |pets| progress(CopyPass::Verification, pets)).await?;
        if target.digest() != source.digest() {
            return Err(CopyError::Differs { pets: source.pets, target: target.pets });
        }
        Ok(CopySummary { pets: source.pets, added, digest: source.digest(), idempotency_records, api_keys })
    }

    /// Compares the target with the source. Returns the digest of the source, and the last pet that the target has.
    async fn check(&self, progress: &mut (dyn FnMut(u64) + Send)) -> Result<(PetsHasher, Option<PetId>), CopyError> {
        let target = self.to.snapshot().await.map_err(CopyError::Target)?;
        let mut target = Pets::new(&*target, self.page_size);
        let mut source = Pets::new(&*self.from, self.page_size);
        let (mut hasher, mut last_copied) = (PetsHasher::default(), None);
        let mut copied = target.next().await.map_err(CopyError::Target)?;
        while let Some(pet) = source.next().await.map_err(CopyError::Source)? {
            match copied {
                Some(same) if same == pet => {
                    last_copied = Some(same.pet.id());
                    copied = target.next().await.map_err(CopyError::Target)?;
                }
                Some(other) if other.pet.id() <= pet.pet.id() => return Err(CopyError::OtherPets(other.pet.id())),
                greater => copied = greater,
            }
            hasher.add(&pet);
            progress(hasher.pets);
        }
        match copied {
            Some(other) => Err(CopyError::OtherPets(other.pet.id())),
            None => Ok((hasher, last_copied)),
        }
    }

    /// Adds the pets that the target lacks, a page in each transaction. Ids are committed out of order, so pages up to
    /// the last pet of the target can have gaps. Returns the number of pets that were added.
    async fn add_pets(
        &self,
        last_copied: Option<PetId>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, CopyError> {
        let (mut after, mut done, mut added) = (None, 0, 0);
        loop {
            let mut pets = self.from.pets(after, self.page_size).await.map_err(CopyError::Source)?;
            let Some(last) = pets.last().map(|last| last.pet.id()) else { return Ok(added) };
            done += pets.len() as u64;
            if after < last_copied {
                let target = self.to.snapshot().await.map_err(CopyError::Target)?;
                let copied = target.pets(after, pets.len()).await.map_err(CopyError::Target)?;
                pets.retain(|pet| copied.binary_search_by_key(&pet.pet.id(), |copied| copied.pet.id()).is_err());
            }
            if !pets.is_empty() {
                added += pets.len() as u64;
                if !self.to.add_pets(pets).await.map_err(CopyError::Target)? {
                    return Err(CopyError::TargetChanged);
                }
            }
            after = Some(last);
            progress(done);
        }
    }

    async fn add_idempotency_records(&self) -> Result<u64, CopyError> {
        let (mut after, mut done) = (None, 0);
        loop {
            let records = self.from.idempotency_records(after, self.page_size).await.map_err(CopyError::Source)?;
            let Some(last) = records.last() else { return Ok(done) };
            after = Some(last.key.clone());
            done += records.len() as u64;
            self.to.add_idempotency_records(records).await.map_err(CopyError::Target)?;
        }
    }

    async fn hash_target(&self, progress: &mut (dyn FnMut(u64) + Send)) -> Result<PetsHasher, CopyError> {
        let target = self.to.snapshot().await.map_err(CopyError::Target)?;
        let mut pets = Pets::new(&*target, self.page_size);
        let mut hasher = PetsHasher::default();
        while let Some(pet) = pets.next().await.map_err(CopyError::Target)? {
            hasher.add(&pet);
            progress(hasher.pets);
        }
        Ok(hasher)
    }
}

/// Imports each key of a store. One that contradicts the target ends the copy.
async fn copy_api_keys(from: &dyn ApiKeyStore, to: &dyn ApiKeyStore) -> Result<ImportedApiKeys, CopyError> {
    let keys = from.list().await.map_err(CopyError::SourceApiKeys)?;
    let ids: HashSet<_> = keys.iter().map(|key| key.key.id.clone()).collect();
    let mut imported = ImportedApiKeys::default();
    for key in keys {
        let changed = to.change(ApiKeyChange::Import(key)).await.map_err(CopyError::TargetApiKeys)?;
        let [before, after] = [changed.before, changed.after].map(|key| key.map_or(0, |key| key.tokens.len()));
        imported.added += after.saturating_sub(before);
    }
    let target = to.list().await.map_err(|error| CopyError::TargetApiKeys(error.into()))?;
    imported.others = target.into_iter().map(|key| key.key.id).filter(|id| !ids.contains(id)).collect();
    Ok(imported)
}

/// The pets of a snapshot one by one, in ascending order of id. It holds one page.
struct Pets<'a> {
    snapshot: &'a dyn StorageSnapshot,
    page: vec::IntoIter<StoredPet>,
    page_size: usize,
    /// Last pet of the page.
    last: Option<PetId>,
    is_last_page: bool,
}

impl<'a> Pets<'a> {
    fn new(snapshot: &'a dyn StorageSnapshot, page_size: usize) -> Self {
        Self { snapshot, page: Vec::new().into_iter(), page_size, last: None, is_last_page: false }
    }

    async fn next(&mut self) -> Result<Option<StoredPet>, StoreFailure> {
        if self.page.len() == 0 && !self.is_last_page {
            let page = self.snapshot.pets(self.last, self.page_size).await?;
            self.last = page.last().map(|last| last.pet.id());
            self.is_last_page = page.len() < self.page_size;
            self.page = page.into_iter();
        }
        Ok(self.page.next())
    }
}

/// SHA-256 digest of a set of stored pets in order of id. It is displayed as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PetsDigest([u8; 32]);

impl fmt::Display for PetsDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[derive(Default)]
struct PetsHasher {
    sha256: Sha256,
    pets: u64,
}

impl PetsHasher {
    fn add(&mut self, stored: &StoredPet) {
        self.sha256.update(stored.pet.id().get().to_be_bytes());
        self.sha256.update(PetDigest::from_pet(stored.pet.new_pet()).as_bytes());
        self.sha256.update(stored.created_at.micros().to_be_bytes());
        self.pets += 1;
    }

    fn digest(&self) -> PetsDigest {
        PetsDigest(self.sha256.clone().finalize().into())
    }
}
