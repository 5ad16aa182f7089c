//! Animals and API keys in the memory of one process.
//!
//! For a first look, for development and for tests: everything is gone when the process ends.

#![warn(clippy::future_not_send)]

mod api_key_directory;
mod idempotency_keys;
mod pet_repository;

pub use api_key_directory::MemoryApiKeyDirectory;
pub use pet_repository::MemoryPetRepository;
