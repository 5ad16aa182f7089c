//! API keys in Redis.
//!
//! [`RedisApiKeyDirectory`] looks keys up in a cache that Redis itself keeps true, and in Redis where the cache does
//! not know. [`RedisApiKeyStore`] issues, rotates and revokes them. Both keep to the layout of `docs/operations.md`.
//!
//! What makes a cached key count, in three rules:
//!
//! 1. A look-up is announced to the cache before it asks Redis, and a change that Redis reports takes both the entry
//!    and the announcement away: what was read before a change is not kept after it (`cache.rs`).
//! 2. A connection of its own carries those reports. Once Redis has confirmed that it will send them, the cache starts
//!    empty (`session.rs`).
//! 3. An entry counts until a moment that only an answer on that connection puts off (`lease.rs`).

#![warn(clippy::future_not_send)]

mod api_key_directory;
mod api_key_store;
mod cache;
mod endpoint;
mod layout;
mod lease;
mod look_up;
mod session;
mod store_error;
mod stored_token;

pub use api_key_directory::{RedisApiKeyDirectory, RedisSettings};
pub use api_key_store::RedisApiKeyStore;
pub use endpoint::{RedisEndpoint, RedisEndpointError, Tls};
