//! The outbound ports: traits for everything outside of this crate that the use cases need.
//!
//! The documentation of a port is the contract of its adapters. The suite `test_support::contract` tests the contract
//! against each adapter. Every call of a request ends: each wait for a server, a lock or a queue has a timeout. Only
//! calls of commands wait for a disk without one. There are no inbound ports: a driving adapter calls the use cases, or
//! a port where a use case would only pass the call on.

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
