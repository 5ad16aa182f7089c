//! The outbound ports: traits for everything outside of this crate that the use cases need.
//!
//! The documentation of a port is the contract of its adapters. The suite `test_support::contract` tests the contract
//! against each adapter. Every call ends: each wait of an adapter has a timeout. There are no inbound ports: a driving
//! adapter calls the use cases, or a port where a use case would only pass the call on.
//!
//! # To add a storage
//! An adapter is a struct that reaches its store, and implements [`PetRepository`] and [`Readiness`]. It converts
//! values of the domain to rows and back, bounds each wait, and says what a failure means: whether anything was
//! changed. The contract suites test the rest. `CONTRIBUTING.md` has the other steps.
//! ```
//! use std::{future::Future, time::Duration};
//!
//! use animal_store_app::ports::*;
//! use animal_store_domain::{NewPet, Pet, PetId, PetStatus};
//! use async_trait::async_trait;
//! use tokio::time::timeout;
//! # pub struct Client; // a driver
//! # type Rows = Result<Vec<(i64, NewPet)>, String>;
//! # impl Client {
//! #     async fn pets(&self, _: Option<PetStatus>, _after: i64, _limit: usize) -> Rows { Ok(Vec::new()) }
//! #     async fn insert(&self, _: &AddPet) -> Result<i64, String> { Ok(1) }
//! # }
//!
//! pub struct AcmePetRepository {
//!     client: Client,
//! }
//!
//! #[async_trait]
//! impl PetRepository for AcmePetRepository {
//!     async fn list(&self, status: Option<PetStatus>, after: Option<PetId>, limit: usize) -> StoreResult<Vec<Pet>> {
//!         let after = after.map_or(0, PetId::get);
//!         let rows = read(self.client.pets(status, after, limit)).await?;
//!         rows.into_iter().map(|(id, pet)| Ok(Pet::new(stored_id(id)?, pet))).collect()
//!     }
//!
//!     async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
//!         let rows = read(self.client.pets(None, id.get() - 1, 1)).await?;
//!         let found = rows.into_iter().find(|(found, _)| *found == id.get());
//!         Ok(found.map(|(_, pet)| Pet::new(id, pet)))
//!     }
//!
//!     // A store of several instances also keeps the idempotency key, in the same transaction.
//!     async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
//!         let lost = |reason| StoreFailure::OutcomeUnknown(Cause::from(reason));
//!         let inserted = timeout(Duration::from_secs(2), self.client.insert(&request)).await;
//!         let id = inserted.map_err(|_| lost("no response".to_owned()))?.map_err(lost)?;
//!         let pet = Pet::new(stored_id(id)?, request.pet);
//!         Ok(AddedPet { pet, replayed: false })
//!     }
//! }
//!
//! #[async_trait]
//! impl Readiness for AcmePetRepository {
//!     async fn check(&self) -> Result<(), Cause> {
//!         let read = read(self.client.pets(None, 0, 1)).await;
//!         read.map(drop).map_err(|failure| Cause::from(failure.to_string()))
//!     }
//! }
//!
//! async fn read<T>(rows: impl Future<Output = Result<T, String>>) -> StoreResult<T> {
//!     let read = timeout(Duration::from_secs(2), rows).await.map_err(|_| StoreFailure::Timeout)?;
//!     read.map_err(|reason| StoreFailure::Unavailable(Cause::from(reason)))
//! }
//!
//! fn stored_id(id: i64) -> StoreResult<PetId> {
//!     PetId::parse(id).map_err(|error| StoreFailure::Corrupt(Cause::from(error.to_string())))
//! }
//! ```

mod api_keys;
mod bulk_storage;
mod pet_repository;

use std::{
    error::Error,
    iter::successors,
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use thiserror::Error;

#[cfg(any(test, feature = "test-support"))]
pub use self::{
    api_keys::{MockApiKeyDirectory, MockApiKeyStore, MockApiKeyUses},
    pet_repository::MockPetRepository,
};
pub use api_keys::{
    ApiKeyChangeError, ApiKeyDirectory, ApiKeyStore, ApiKeyUse, ApiKeyUses, ChangedApiKey,
    RecordedUses,
};
pub use bulk_storage::{
    BulkStorage, IdempotencyRecord, StorageSnapshot, StoredPet, UNFINISHED_COPY,
};
pub use pet_repository::{AddPet, AddPetError, AddedPet, PetRepository};

/// The cause of a failure, as an adapter describes it. It is written to the log and never sent to a client.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct Cause(Arc<str>);

/// What a store returns, unless it fails.
pub type StoreResult<T> = Result<T, StoreFailure>;

/// A store of pets or of API keys failed.
#[derive(Debug, Clone, Error)]
pub enum StoreFailure {
    /// The store cannot be reached or refuses the call. Nothing was changed.
    #[error("the store is unavailable")]
    Unavailable(#[source] Cause),
    /// A bound of the adapter, such as the length of a queue, is reached. Nothing was changed.
    #[error("the store is overloaded")]
    Overloaded,
    /// The store did not respond within its timeout. Nothing was changed.
    #[error("the store did not respond in time")]
    Timeout,
    /// A stored entry is not valid. Nothing was changed.
    #[error("the store contains an invalid entry")]
    Corrupt(#[source] Cause),
    /// The store did not confirm a change: it may have been made.
    #[error("the outcome is unknown: the change may have been made")]
    OutcomeUnknown(#[source] Cause),
}

impl Cause {
    /// Describes an error and its sources.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let errors = successors(Some(error), |&error| error.source());
        let texts: Vec<_> = errors.map(ToString::to_string).collect();
        texts.join(": ").into()
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<StoreFailure> for Cause {
    fn from(failure: StoreFailure) -> Self {
        Self::of(&failure)
    }
}

impl StoreFailure {
    /// Returns the cause, for the log or an operator; without one, the failure itself.
    pub fn reason(&self) -> String {
        self.source()
            .map_or_else(|| self.to_string(), ToString::to_string)
    }
}

/// Probe of a dependency of the service. The result may be slightly out of date.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Checks whether the dependency is ready.
    ///
    /// # Errors
    /// The reason why it is not ready.
    async fn check(&self) -> Result<(), Cause>;
}

/// A probe that does not keep its dependency open.
#[async_trait]
impl<T: Readiness> Readiness for Weak<T> {
    async fn check(&self) -> Result<(), Cause> {
        self.upgrade().ok_or("it has ended")?.check().await
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::UNIX_EPOCH};

    use super::*;
    use crate::test_support::api_key_id;

    #[test]
    fn the_reason_of_a_failure_is_its_cause_or_the_failure_itself() {
        assert_eq!(
            StoreFailure::Unavailable("refused".into()).reason(),
            "refused"
        );
        assert_eq!(
            StoreFailure::Timeout.reason(),
            "the store did not respond in time"
        );
    }

    #[tokio::test]
    async fn a_weak_probe_is_ready_as_long_as_its_dependency_is() {
        let mut dependency = MockReadiness::new();
        dependency.expect_check().once().returning(|| Ok(()));
        let dependency = Arc::new(dependency);
        let probe = Arc::downgrade(&dependency);
        assert!(probe.check().await.is_ok());
        drop(dependency);
        assert_eq!(probe.check().await.unwrap_err().to_string(), "it has ended");
    }

    #[test]
    fn a_recorded_use_is_that_of_its_key_and_kind() {
        let used = (api_key_id("used"), ApiKeyUse::GetPet);
        let recorded = RecordedUses {
            since: None,
            last: [(used.clone(), UNIX_EPOCH)].into(),
        };
        assert_eq!(recorded.last(&used.0, ApiKeyUse::GetPet), Some(UNIX_EPOCH));
        assert_eq!(recorded.last(&used.0, ApiKeyUse::Request), None);
    }
}
