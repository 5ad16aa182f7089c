//! API keys in Redis.
//!
//! [`RedisApiKeyDirectory`] looks keys up in a cache that Redis invalidates, and in Redis if the cache has no entry.
//! [`RedisApiKeyUses`] records when keys are used. [`RedisApiKeyStore`] adds, lists, rotates and revokes keys.
//! [`diagnose`] and [`diagnose_administration`] are the part of `animal-store doctor` about Redis.
//! `docs/operations/redis.md` describes what they keep in Redis.

#![warn(clippy::future_not_send)]

mod admin;
mod concurrency;
mod connection;
mod diagnosis;
mod keyspace;
mod lookup;
mod settings;
mod token;
mod use_record;

pub use admin::RedisApiKeyStore;
pub use connection::{RedisClientCertificate, RedisEndpoint, RedisEndpointError, RedisTls};
pub use diagnosis::{diagnose, diagnose_administration};
pub use lookup::RedisApiKeyDirectory;
pub use settings::RedisSettings;
pub use use_record::RedisApiKeyUses;
