use animal_store_domain::{NewPet, Pet, PetId, PetStatus};
use async_trait::async_trait;
use thiserror::Error;

use super::{StoreFailure, StoreResult};
use crate::IdempotencyKey;

/// Storage of pets.
///
/// - Ids are unique, 1 or greater, and never reused. If `add` returned pet A before the `add` of pet B began, B has the
///   greater id.
/// - A pet that [`add`](Self::add) returned is found and listed by every call that begins afterwards. It is
///   as durable as the storage of the adapter.
/// - Pets are returned exactly as they were added.
/// - At most one `add` per idempotency key inserts a pet. Others return that pet or fail with
///   [`AddPetError::IdempotencyMismatch`]. While the first one is in flight, they wait for it within their timeout, and
///   then fail with [`AddPetError::IdempotencyConflict`]. A failed `add` leaves the key free. After its retention, a
///   setting of the adapter, a key is free again.
///
/// # To add a storage
/// An adapter is a struct that reaches its store, and implements [`PetRepository`] and
/// [`Readiness`](super::Readiness). It converts values of the domain to rows and back, bounds each wait, and says what a
/// failure means: whether anything was changed. The contract suites test the rest. `CONTRIBUTING.md` has the other
/// steps.
/// ```
/// use std::{future::Future, time::Duration};
///
/// use animal_store_app::ports::*;
/// use animal_store_domain::{NewPet, Pet, PetId, PetStatus};
/// use async_trait::async_trait;
/// use tokio::time::timeout;
/// # pub struct Client; // a driver
/// # type Rows = Result<Vec<(i64, NewPet)>, String>;
/// # impl Client {
/// #     async fn pets(&self, _: Option<PetStatus>, _after: i64, _limit: usize) -> Rows { Ok(Vec::new()) }
/// #     async fn insert(&self, _: &AddPet) -> Result<i64, String> { Ok(1) }
/// # }
///
/// pub struct AcmePetRepository {
///     client: Client,
/// }
///
/// #[async_trait]
/// impl PetRepository for AcmePetRepository {
///     async fn list(&self, status: Option<PetStatus>, after: Option<PetId>, limit: usize) -> StoreResult<Vec<Pet>> {
///         let after = after.map_or(0, PetId::get);
///         let rows = read(self.client.pets(status, after, limit)).await?;
///         rows.into_iter().map(|(id, pet)| Ok(Pet::new(stored_id(id)?, pet))).collect()
///     }
///
///     async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
///         let rows = read(self.client.pets(None, id.get() - 1, 1)).await?;
///         let found = rows.into_iter().find(|(found, _)| *found == id.get());
///         Ok(found.map(|(_, pet)| Pet::new(id, pet)))
///     }
///
///     // A store of several instances also keeps the idempotency key, in the same transaction.
///     async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
///         let lost = |reason| StoreFailure::OutcomeUnknown(Cause::from(reason));
///         let inserted = timeout(Duration::from_secs(2), self.client.insert(&request)).await;
///         let id = inserted.map_err(|_| lost("no response".to_owned()))?.map_err(lost)?;
///         let pet = Pet::new(stored_id(id)?, request.pet);
///         Ok(AddedPet { pet, replayed: false })
///     }
/// }
///
/// #[async_trait]
/// impl Readiness for AcmePetRepository {
///     async fn check(&self) -> Result<(), Cause> {
///         let read = read(self.client.pets(None, 0, 1)).await;
///         read.map(drop).map_err(|failure| Cause::from(failure.to_string()))
///     }
/// }
///
/// async fn read<T>(rows: impl Future<Output = Result<T, String>>) -> StoreResult<T> {
///     let read = timeout(Duration::from_secs(2), rows).await.map_err(|_| StoreFailure::Timeout)?;
///     read.map_err(|reason| StoreFailure::Unavailable(Cause::from(reason)))
/// }
///
/// fn stored_id(id: i64) -> StoreResult<PetId> {
///     PetId::parse(id).map_err(|error| StoreFailure::Corrupt(Cause::from(error.to_string())))
/// }
/// ```
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait PetRepository: Send + Sync {
    /// Returns the first `limit` pets in ascending order of id. With a status, only pets of that status; without, all
    /// pets, including those without a status. With `after`, only pets with a greater id.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> StoreResult<Vec<Pet>>;

    /// Returns the pet with this id. An unknown id is `Ok(None)`.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    async fn find(&self, id: PetId) -> StoreResult<Option<Pet>>;

    /// Adds a pet under a new id and returns it. If an earlier `add` with the same idempotency key added it, returns
    /// that pet.
    ///
    /// # Errors
    /// After [`StoreFailure::OutcomeUnknown`] the pet may have been added. After any other error this call did not add
    /// it and never will. A request with an idempotency key may be retried after every error except
    /// [`AddPetError::IdempotencyMismatch`].
    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError>;
}

/// A request to add a pet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPet {
    /// The pet.
    pub pet: NewPet,
    /// Key that prevents a retry from adding a second pet.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl AddPet {
    /// Creates a request without an idempotency key.
    pub const fn new(pet: NewPet) -> Self {
        Self {
            pet,
            idempotency_key: None,
        }
    }
}

/// Result of [`PetRepository::add`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedPet {
    /// The pet as it was added.
    pub pet: Pet,
    /// Whether an earlier request with the same idempotency key added it.
    pub replayed: bool,
}

/// [`PetRepository::add`] returned no pet.
#[derive(Debug, Error)]
pub enum AddPetError {
    /// The repository failed. The pet was not stored and never will be, except after [`StoreFailure::OutcomeUnknown`]:
    /// it may have been stored.
    #[error(transparent)]
    Store(#[from] StoreFailure),
    /// An earlier request with the same idempotency key was in flight until the timeout. This request did not add the
    /// pet.
    #[error("an earlier request with this idempotency key is in flight")]
    IdempotencyConflict,
    /// The idempotency key was used for another pet. This request did not add the pet.
    #[error("this idempotency key was used for another pet")]
    IdempotencyMismatch,
}
