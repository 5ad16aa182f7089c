use std::time::SystemTime;

use animal_store_domain::{CreationTime, NewPet, Pet, PetId};
use async_trait::async_trait;
use thiserror::Error;

use super::Cause;
use crate::{IdempotencyKey, PetDigest};

/// Reads and writes the content of a storage in bulk, while the service may use the storage.
///
/// - Every batch is written in one commit: all of it or nothing.
/// - After a batch with ids was written, every later [`PetRepository::add`](super::PetRepository::add) assigns a
///   greater id.
/// - Every call ends: each wait of an adapter has a timeout.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait BulkStorage: Send + Sync {
    /// Opens a consistent view of everything that is committed now.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, BulkStorageError>;

    /// Adds pets. Returns what happened to each, in their order.
    ///
    /// # Errors
    /// See [`BulkStorageError`]. Except after [`BulkStorageError::OutcomeUnknown`], nothing of the batch was written.
    async fn add_pets(&self, batch: PetBatch) -> Result<Vec<AddedBulkPet>, BulkStorageError>;

    /// Adds records of idempotency keys. A record whose key exists is not added and changes nothing.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), BulkStorageError>;

    /// Returns how far the last import of this source has come. `None`: no line of it was imported.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn import_progress(&self, source: ImportSource) -> Result<Option<ImportProgress>, BulkStorageError>;

    /// Marks the progress of an import as finished. An unknown source is no error, and nothing is recorded for it.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn finish_import(&self, source: ImportSource) -> Result<(), BulkStorageError>;
}

/// A consistent view of a storage. Dropping it closes it.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait StorageSnapshot: Send {
    /// Returns the first `limit` pets with ids greater than `after`, in ascending order of id. Fewer than `limit` pets
    /// are the last ones.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn pets(&mut self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, BulkStorageError>;

    /// Returns the first `limit` records of idempotency keys that have not expired and are greater than `after`, in
    /// ascending order of their keys. Fewer than `limit` records are the last ones.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn idempotency_records(
        &mut self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, BulkStorageError>;
}

/// A pet as a storage keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPet {
    /// The pet.
    pub pet: Pet,
    /// When it was created.
    pub created_at: CreationTime,
}

/// The record by which a retry with an idempotency key is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The key.
    pub key: IdempotencyKey,
    /// Digest of the pet that was added with it.
    pub pet_digest: PetDigest,
    /// Id of that pet.
    pub pet_id: PetId,
    /// Expiry time, to the millisecond.
    pub expires_at: SystemTime,
}

/// Pets to be added in one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PetBatch {
    /// The pets. Ids that are given are distinct.
    pub pets: Vec<BulkPet>,
    /// Whether a taken id refuses the batch with [`BulkStorageError::IdTaken`].
    pub refuse_taken_ids: bool,
    /// The progress of an import, which is written in the same commit.
    pub step: Option<ImportStep>,
}

/// A pet to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkPet {
    /// The id. `None`: the storage assigns the next one.
    pub id: Option<PetId>,
    /// The pet.
    pub pet: NewPet,
    /// When it was created. `None`: now.
    pub created_at: Option<CreationTime>,
}

/// What happened to a [`BulkPet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedBulkPet {
    /// The pet was added under this id.
    Added(PetId),
    /// The storage has the same pet under this id, with the same creation time if one is given. It was not added again.
    Exists,
    /// Another pet has this id. Nothing was added.
    IdTaken,
}

/// Identifies the file of an import by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImportSource(pub [u8; 32]);

/// How far an import has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    /// Number of lines of the file that are done.
    pub lines: u64,
    /// Digest of these lines.
    pub digest: [u8; 32],
    /// Whether the file has no other lines.
    pub finished: bool,
}

/// A step of an import, from the progress before a batch to the progress after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportStep {
    /// The file.
    pub source: ImportSource,
    /// The recorded progress before the step; `None` before the first step. If another one is recorded, the batch is
    /// refused with [`BulkStorageError::ImportConflict`].
    pub from: Option<ImportProgress>,
    /// The progress after the step.
    pub to: ImportProgress,
}

/// The storage failed.
#[derive(Debug, Error)]
pub enum BulkStorageError {
    /// The storage cannot be reached, refuses the call, or did not respond in time. Nothing was written.
    #[error("the storage is unavailable")]
    Unavailable(#[source] Cause),
    /// The batch may have been written.
    #[error("the outcome is unknown: the last batch may have been written")]
    OutcomeUnknown(#[source] Cause),
    /// A stored row is not valid.
    #[error("the storage contains an invalid row")]
    Corrupt(#[source] Cause),
    /// Another pet has this id. Nothing was written.
    #[error("another pet has the id {}", .0.get())]
    IdTaken(PetId),
    /// Another process imports the same file. Nothing was written.
    #[error("another process imports the same file")]
    ImportConflict,
}
