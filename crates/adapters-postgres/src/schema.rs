//! The schema of the database, and its migrations.
//!
//! **Problem.** In a rolling restart, processes of several releases start at the same time on one database, and a
//! process may find a schema that is older or newer than its own.
//!
//! **Invariant.** One process at a time runs migrations, each at most once; no request is served before the schema can
//! be used. A migration is recorded by its whole name, so that an older program can derive from the name whether the
//! migration only expanded the schema, which is harmless, or contracted it. See `migrations/README.md`.
//!
//! **Proof.** `tests/postgres/migrations.rs` (concurrent starts, newer programs, locks, failures,
//! names of migrations).

mod migration_error;
mod migrations;
mod named_migration;
mod preparation;
pub(crate) mod tables;

pub use migration_error::MigrationError;
pub use migrations::Migrations;
pub(crate) use preparation::prepare_schema;
