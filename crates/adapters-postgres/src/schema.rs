//! The schema of the database, and its migrations.
//!
//! **Problem.** In a rolling restart, processes of several releases start at the same time on one database, and a
//! process may find a schema that is older or newer than its own.
//!
//! **Invariant.** One process at a time runs migrations, each at most once; no request is served before the schema can
//! be used. The recorded version of a migration says whether it only expanded the schema, which an older program
//! works with, or contracted it. A migration waits at most 200 ms for the lock of a table. See `migrations/README.md`.
//!
//! **Proof.** `tests/postgres/migrations.rs` (concurrent starts, newer and older programs, locks, failures, names of
//! migrations).

mod migration_error;
mod migrations;
mod preparation;

pub use migration_error::MigrationError;
pub use migrations::Migrations;
pub(crate) use preparation::prepare_schema;
