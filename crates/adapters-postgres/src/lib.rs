//! Pets and API keys in PostgreSQL.
//!
//! [`PgStorage`] exists once per process: it prepares the schema and owns the connections that write.
//! [`PgPetRepository`] exists once per HTTP worker: it reads on connections of the worker's own runtime.
//! [`PgBulkStorage`] reads and writes the content of a database for `animal-store copy`, beside the running service.
//! [`PgApiKeyStore`] changes API keys, and starts their directory and the record of their uses.
//!
//! `pet_repository` shows every request. Each module with a folder solves one problem and says at its top which
//! invariant it holds and which test proves that: `reads` (alone and in batches), `creates` (with and without an
//! idempotency key), `batching` (dispatchers, which own the connections), `bulk` (snapshots and batches of a copy),
//! `keys` (API keys), `connection` (endpoint, TLS) and `schema` (migrations). `diagnosis` has the findings of
//! `animal-store doctor`. A new member of a pet touches a migration and `pet_row.rs`.

#![warn(clippy::future_not_send)]

mod batching;
mod bulk;
mod checks;
mod connection;
mod creates;
mod diagnosis;
mod error;
mod keys;
mod metrics;
mod pet_repository;
mod pet_row;
mod purpose;
mod readiness;
mod reads;
mod schema;
mod settings;
mod storage;
mod sweep;
mod transaction;

pub use bulk::PgBulkStorage;
pub use connection::{PgEndpoint, PgEndpointError};
pub use diagnosis::diagnose;
pub use error::MigrationError;
pub use keys::{PgApiKeyStore, api_key_store};
pub use pet_repository::PgPetRepository;
pub use schema::Migrations;
pub use settings::{PostgresSettings, SchemaMode};
pub use storage::PgStorage;
