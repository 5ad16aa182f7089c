use std::time::SystemTime;

use animal_store_domain::{CreationTime, Pet, PetId};
use async_trait::async_trait;

use super::StoreResult;
use crate::{IdempotencyKey, PetDigest};

/// What a start of the service and `animal-store doctor` say about the mark of [`mark_copy`](BulkStorage::mark_copy).
pub const UNFINISHED_COPY: &str =
    "a copy into this store has not been completed: pets or API keys can be missing";

/// One side of a copy: a storage that takes pets with their ids, while the service may use it.
///
/// - Every call that adds something is one transaction: it adds all of it or nothing.
/// - After pets were added, every later [`PetRepository::add`](super::PetRepository::add) assigns a greater id.
#[async_trait]
pub trait BulkStorage: Send + Sync {
    /// Returns the migrations that a newer program has run, such as `0004expand`. Snapshots lack what these added.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn newer_migrations(&self) -> StoreResult<Vec<String>>;

    /// Checks the permissions that the other calls need. Writes nothing.
    ///
    /// # Errors
    /// [`StoreFailure::Unavailable`](crate::ports::StoreFailure::Unavailable) names the missing permissions.
    async fn check_writable(&self) -> StoreResult<()>;

    /// Marks the storage as one whose copy has begun, or removes the mark. It outlives the process: a start
    /// of the service and `animal-store doctor` report it.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn mark_copy(&self, is_unfinished: bool) -> StoreResult<()>;

    /// Opens a consistent view of everything that is committed now.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn snapshot(&self) -> StoreResult<Box<dyn StorageSnapshot>>;

    /// Gives every later [`PetRepository::add`](super::PetRepository::add) an id greater than this one.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn skip_ids(&self, last: PetId) -> StoreResult<()>;

    /// Adds pets under their ids, which are distinct, with their creation times. Returns `false` if another pet has one
    /// of the ids: nothing was added.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn add_pets(&self, pets: Vec<StoredPet>) -> StoreResult<bool>;

    /// Adds records of idempotency keys. A record whose key exists and has not expired is not added and changes
    /// nothing.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> StoreResult<()>;
}

/// A consistent view of a storage. Dropping it closes it.
#[async_trait]
pub trait StorageSnapshot: Send + Sync {
    /// Returns the greatest id that the storage has given out, also to a pet that was deleted, or a greater one.
    /// `None`: it has given out none.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn last_id(&self) -> StoreResult<Option<PetId>>;

    /// Returns the first `limit` pets with ids greater than `after`, in ascending order of id. Fewer than `limit` pets
    /// are the last ones.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn pets(&self, after: Option<PetId>, limit: usize) -> StoreResult<Vec<StoredPet>>;

    /// Returns the first `limit` records of idempotency keys that have not expired and are greater than `after`, in
    /// ascending order of their keys. Fewer than `limit` records are the last ones.
    ///
    /// # Errors
    /// See [`StoreFailure`](crate::ports::StoreFailure).
    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> StoreResult<Vec<IdempotencyRecord>>;
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
