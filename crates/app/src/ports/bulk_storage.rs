use std::time::SystemTime;

use animal_store_domain::{CreationTime, Pet, PetId};
use async_trait::async_trait;
use thiserror::Error;

use super::Cause;
use crate::{IdempotencyKey, PetDigest};

/// The target of a copy: a storage that takes pets with their ids, while the service may use it.
///
/// - Every call that adds something is one transaction: it adds all of it or nothing.
/// - After pets were added, every later [`PetRepository::add`](super::PetRepository::add) assigns a greater id.
/// - Every call ends: each wait of an adapter has a timeout.
#[async_trait]
pub trait BulkStorage: Send + Sync {
    /// Checks the permissions that [`add_pets`](Self::add_pets) and
    /// [`add_idempotency_records`](Self::add_idempotency_records) need. Writes nothing.
    ///
    /// # Errors
    /// [`BulkStorageError::Unavailable`] names the missing permissions.
    async fn check_writable(&self) -> Result<(), BulkStorageError>;

    /// Opens a consistent view of everything that is committed now.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, BulkStorageError>;

    /// Adds pets under their ids, which are distinct, with their creation times.
    ///
    /// # Errors
    /// See [`BulkStorageError`]. Except after [`BulkStorageError::OutcomeUnknown`], nothing was written.
    async fn add_pets(&self, pets: Vec<StoredPet>) -> Result<(), BulkStorageError>;

    /// Adds records of idempotency keys. A record whose key exists and has not expired is not added and changes
    /// nothing.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), BulkStorageError>;
}

/// A consistent view of a storage. Dropping it closes it.
#[async_trait]
pub trait StorageSnapshot: Send + Sync {
    /// Returns the first `limit` pets with ids greater than `after`, in ascending order of id. Fewer than `limit` pets
    /// are the last ones.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn pets(&self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, BulkStorageError>;

    /// Returns the first `limit` records of idempotency keys that have not expired and are greater than `after`, in
    /// ascending order of their keys. Fewer than `limit` records are the last ones.
    ///
    /// # Errors
    /// See [`BulkStorageError`].
    async fn idempotency_records(
        &self,
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
    /// Another pet has the id of one of these pets. Nothing was written.
    #[error("another pet has the id of a pet in the batch")]
    IdTaken,
}
