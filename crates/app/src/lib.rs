//! The use cases of the animal store and the ports they need.
//!
//! A use case is a plain struct with one `execute`. What it needs from outside is a port: a trait whose
//! documentation is a contract, held as `Arc<dyn …>` because configuration picks the adapter at run time. The suite
//! `test_support::contract` (feature `test-support`) puts every adapter through that contract.
//!
//! Nothing here knows HTTP, SQL or a wire format.

#![warn(clippy::future_not_send)]

mod api_key;
mod authenticate;
mod check_readiness;
mod create_pet;
mod get_pet;
mod idempotency_key;
mod issue_api_key;
mod list_api_keys;
mod list_pets;
pub mod ports;
mod revoke_api_key;
mod rotate_api_key;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;

pub use api_key::{ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, ApiToken, LabelError, Scope, Scopes, UnknownScope};
pub use authenticate::{Authenticate, AuthenticateError};
pub use check_readiness::CheckReadiness;
pub use create_pet::{CreatePet, CreatePetError};
pub use get_pet::{GetPet, GetPetError};
pub use idempotency_key::IdempotencyKey;
pub use issue_api_key::{IssueApiKey, IssueApiKeyError, IssueRequest, IssuedApiKey};
pub use list_api_keys::ListApiKeys;
pub use list_pets::{ListPets, ListPetsError};
pub use revoke_api_key::{RevokeApiKey, RevokeApiKeyError};
pub use rotate_api_key::{RotateApiKey, RotateApiKeyError, RotateRequest};
