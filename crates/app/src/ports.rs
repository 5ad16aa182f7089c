//! What the use cases need from outside, and why it may fail.
//!
//! Ports are outbound only; who drives the application calls the use cases. A port's documentation is the contract
//! of its adapters.

mod api_key_directory;
mod api_key_store;
mod pet_repository;
mod random_source;
mod readiness;

#[cfg(any(test, feature = "test-support"))]
pub use api_key_directory::MockApiKeyDirectory;
pub use api_key_directory::{ApiKeyDirectory, DirectoryError};
#[cfg(any(test, feature = "test-support"))]
pub use api_key_store::MockApiKeyStore;
pub use api_key_store::{Added, ApiKeyStore, ApiKeyStoreError, NewToken, TokenEntry};
#[cfg(any(test, feature = "test-support"))]
pub use pet_repository::MockPetRepository;
pub use pet_repository::{AddError, AddPet, AddedPet, PetRepository, StorageError};
#[cfg(any(test, feature = "test-support"))]
pub use random_source::MockRandomSource;
pub use random_source::RandomSource;
#[cfg(any(test, feature = "test-support"))]
pub use readiness::MockReadiness;
pub use readiness::{NotReady, Readiness};

/// What an adapter says of a failure. It is for the log alone.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
