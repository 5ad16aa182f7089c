//! Animals in PostgreSQL.
//!
//! [`PgStorage`] is what a process has one of: it checks or migrates the schema, and owns the connections that write.
//! [`PgPetRepository`] is what each HTTP worker has one of: its reads are pipelined on few connections that live on
//! the worker's own runtime.
//!
//! Reads are Diesel's, prepared, and shaped so that no plan can go wrong (`pet_query.rs`). Creates are gathered while
//! the commit before them is on its way to disk, and written by one statement in one commit (`group_commit.rs`); those
//! with an idempotency key apart from those without (`creates.rs`). A connection that is lost, or did not answer in
//! time, is replaced (`link.rs`).

#![warn(clippy::future_not_send)]

mod creates;
mod endpoint;
mod error;
#[cfg(test)]
mod explain;
mod group_commit;
mod link;
mod migrations;
mod outage;
mod pet_query;
mod pet_repository;
mod pet_row;
mod read_session;
mod readiness;
mod schema;
mod settings;
mod storage;
mod sweep;
mod tls;

pub use endpoint::{PgEndpoint, PgEndpointError};
pub use migrations::{MigrationError, Migrations};
pub use pet_repository::PgPetRepository;
pub use readiness::PgReadiness;
pub use settings::{PostgresSettings, SchemaMode};
pub use storage::{PgStorage, StartError, WriterEnd};
