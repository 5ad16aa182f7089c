//! The schema of the file, and its migrations.
//!
//! **Problem.** Several processes may start at the same time on one file, and a process may find a schema that is older
//! or newer than its own.
//!
//! **Invariant.** One process at a time runs migrations, each at most once, and all of them in one transaction. A
//! migration is recorded by its whole name, so that an older program can derive from the name whether the migration
//! only expanded the schema, which is harmless, or contracted it.
//!
//! **Proof.** `tests/sqlite/migrations.rs`.

mod migrations;
mod named_migration;
pub(crate) mod tables;

pub(crate) use migrations::{compare, migrate};

/// Identifies the files of this program: `anst` in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x616e_7374;
