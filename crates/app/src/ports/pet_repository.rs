use animal_store_domain::{NewPet, Pet, PetId, PetStatus};
use async_trait::async_trait;
use thiserror::Error;

use super::Cause;
use crate::IdempotencyKey;

/// Where the animals are kept.
///
/// - Ids are unique, never used twice, and 1 or more. An animal added after another one was returned has the greater
///   id.
/// - What [`add`](Self::add) returned is found and listed by every call that begins afterwards, and survives what
///   the adapter's storage survives.
/// - Names, categories and statuses come back exactly as they were added.
/// - Of all adds with one idempotency key, one adds its animal, whoever asks where and whatever fails in between. The
///   others are given that animal again, or refused: while it is being added, and where they ask for another one. Only an addition takes a key; it is
///   free again when its retention, which the adapter is told, is over.
/// - Every call ends: an adapter that waits for something has a deadline for it.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait PetRepository: Send + Sync {
    /// The first `at_most` animals in ascending order of id, of those that have the status (where one is given;
    /// otherwise of all, those without a status included) and an id greater than `after` (where it is given).
    ///
    /// # Errors
    /// See [`StorageError`].
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        at_most: usize,
    ) -> Result<Vec<Pet>, StorageError>;

    /// The animal with this id; an unknown id is `Ok(None)`.
    ///
    /// # Errors
    /// See [`StorageError`].
    async fn find(&self, id: PetId) -> Result<Option<Pet>, StorageError>;

    /// Adds an animal under a new id and returns it; or returns the one that was added with the same idempotency key.
    ///
    /// # Errors
    /// [`AddError::OutcomeUnknown`] where the animal may have been added; every other error promises that this request
    /// did not add it and never will. With an idempotency key, asking again is right after any of them but
    /// [`AddError::IdempotencyMismatch`].
    async fn add(&self, request: AddPet) -> Result<AddedPet, AddError>;
}

/// A request to add an animal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPet {
    /// The animal.
    pub pet: NewPet,
    /// By which it is added once, however often that is asked for.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl AddPet {
    /// A request without an idempotency key.
    pub const fn new(pet: NewPet) -> Self {
        Self { pet, idempotency_key: None }
    }
}

/// An animal that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedPet {
    /// The animal, as it was when it was added.
    pub pet: Pet,
    /// Whether an earlier request with the same idempotency key added it.
    pub replayed: bool,
}

/// Why a repository did not do what it was asked for.
#[derive(Debug, Error)]
pub enum StorageError {
    /// It cannot be reached, or refuses to work.
    #[error("the storage is unavailable")]
    Unavailable(#[source] Cause),
    /// It has no room for another request now.
    #[error("the storage is overloaded")]
    Overloaded,
    /// It did not answer in time.
    #[error("the storage did not answer in time")]
    Deadline,
    /// It holds something that is no animal.
    #[error("the storage holds something that is no animal")]
    Corrupt(#[source] Cause),
}

/// Why an animal was not returned as added.
#[derive(Debug, Error)]
pub enum AddError {
    /// It was not added and never will be.
    #[error("the animal was not stored")]
    NotStored(#[from] StorageError),
    /// It was not added by this request: an earlier one with the same idempotency key is still under way.
    #[error("the first request with this idempotency key is still under way")]
    IdempotencyConflict,
    /// It was not added: the idempotency key belongs to another animal.
    #[error("another animal was added with this idempotency key")]
    IdempotencyMismatch,
    /// It may have been added.
    #[error("it is unknown whether the animal was stored")]
    OutcomeUnknown(#[source] Cause),
}
