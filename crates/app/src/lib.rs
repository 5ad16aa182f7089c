//! The use cases of the animal store and the ports that they need.
//!
//! A use case is a struct; its main method is `execute`: [`ListPets`], [`CreatePet`], [`GetPet`], [`Authenticate`],
//! [`ImportPets`], [`ExportPets`], [`CopyStore`], and those on API keys, such as [`IssueApiKey`]. What it needs from
//! outside is a port, a trait in [`ports`]. A port is held as `Arc<dyn …>`, because the configuration chooses the
//! adapter at run time. This crate knows no HTTP, no SQL and no wire format.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//!
//! use animal_store_app::{ApiKey, ApiKeyId, ApiKeyLabel, CreatePet, Scopes, WriteAccess, ports::*};
//! use animal_store_domain::{CategoryId, NewPet, PetName};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let repository = animal_store_adapters_memory::MemoryPetRepository::new(std::time::Duration::from_hours(24));
//! let repository: Arc<dyn PetRepository> = Arc::new(repository); // any adapter
//! let key = ApiKey { id: ApiKeyId::parse("shop")?, label: ApiKeyLabel::parse("web shop")?, scopes: Scopes::ALL };
//! let access = WriteAccess::new(Arc::new(key))?; // fails without the scope `write`
//!
//! let rex = NewPet::new(PetName::parse("Rex")?, CategoryId::new(1));
//! let added = CreatePet::new(repository).execute(&access, AddPet::new(rex)).await?;
//! assert_eq!(added.pet.id().get(), 1);
//! # Ok(())
//! # }
//! ```

#![warn(clippy::future_not_send)]

mod api_key;
mod api_key_change;
mod audit_entry;
mod authenticate;
mod authorize;
mod check_readiness;
mod copy_store;
mod diagnosis;
mod exports;
mod idempotency_key;
mod imports;
mod keys;
mod pets;
pub mod ports;
mod stored_time;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;

pub use api_key::{
    ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyIdError, ApiKeyLabel, ApiKeyLabelError, ApiToken,
    ApiTokenError, Scope, ScopeError, Scopes, is_deceptive,
};
pub use api_key_change::{ApiKeyChange, ApiKeyRefusal, IssuedApiKey, IssuedToken, NewToken};
pub use audit_entry::AuditEntry;
pub use authenticate::{Authenticate, AuthenticateError};
pub use authorize::{InsufficientScope, ReadAccess, WriteAccess};
pub use check_readiness::CheckReadiness;
pub use copy_store::{ApiKeyStores, CopyError, CopyStore, CopySummary, ImportedApiKeys};
pub use diagnosis::{Finding, Verdict};
pub use exports::ExportPets;
pub use idempotency_key::{IdempotencyKey, PetDigest};
pub use imports::{ImportPets, ImportRequests};
pub use keys::{
    IssueApiKey, IssueOutcome, ListApiKeys, ListedApiKeys, ReadAuditLog, RevokeApiKey,
    RotateApiKey, RotatedApiKey,
};
pub use pets::*;
pub use stored_time::{from_milliseconds, milliseconds};
