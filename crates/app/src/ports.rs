//! The outbound ports: traits for everything outside of this crate that the use cases need.
//!
//! The documentation of a port is the contract of its adapters. The suite `test_support::contract` tests the contract
//! against each adapter. Every call ends: each wait of an adapter has a timeout. There are no inbound ports: a driving
//! adapter calls the use cases, or a port where a use case would only pass the call on.

mod api_key_directory;
mod api_key_store;
mod api_key_uses;
mod bulk_storage;
mod pet_repository;
mod readiness;
mod store_failure;

#[cfg(any(test, feature = "test-support"))]
pub use self::{
    api_key_directory::MockApiKeyDirectory, api_key_store::MockApiKeyStore, api_key_uses::MockApiKeyUses,
    pet_repository::MockPetRepository, readiness::MockReadiness,
};
pub use api_key_directory::ApiKeyDirectory;
pub use api_key_store::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey};
pub use api_key_uses::{ApiKeyUse, ApiKeyUses, RecordedUses};
pub use bulk_storage::{BulkStorage, IdempotencyRecord, StorageSnapshot, StoredPet};
pub use pet_repository::{AddPet, AddPetError, AddedPet, PetRepository};
pub use readiness::Readiness;
pub use store_failure::StoreFailure;

/// The cause of a failure, as an adapter describes it. It is written to the log and never sent to a client.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
