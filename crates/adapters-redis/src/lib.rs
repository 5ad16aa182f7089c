//! API keys in Redis.
//!
//! [`RedisApiKeyDirectory`] looks keys up in a cache that Redis invalidates, and in Redis if the cache has no entry.
//! [`RedisApiKeyStore`] adds, lists, rotates and revokes keys. `docs/operations.md` describes what both keep in Redis.

#![warn(clippy::future_not_send)]

mod admin;
mod connection;
mod layout;
mod lookup;
mod settings;
mod token_hash;

pub use admin::RedisApiKeyStore;
pub use connection::{RedisEndpoint, RedisEndpointError, RedisTls};
pub use lookup::RedisApiKeyDirectory;
pub use settings::RedisSettings;
