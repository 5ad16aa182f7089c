//! Pets and API keys in the memory of one process, for development and tests: nothing survives the process.

#![warn(clippy::future_not_send)]

mod api_key_directory;
mod idempotency_keys;
mod pet_repository;

pub use api_key_directory::MemoryApiKeyDirectory;
pub use pet_repository::MemoryPetRepository;
