//! The schema of the file, and its migrations.
//!
//! **Problem.** Several processes may start at the same time on one file, and a process may find a schema that is older
//! or newer than its own.
//!
//! **Invariant.** One process at a time runs migrations, each at most once, and all of them in one transaction. While
//! they run, foreign keys are not enforced, so that a table can be rebuilt; before the commit they are checked. Diesel
//! records the version of a migration, such as `0001expand`, from which an older program derives whether the migration
//! only expanded the schema, which is harmless, or contracted it.
//!
//! **Proof.** `tests/sqlite/migrations.rs`, and the unit tests of `migrations`.

mod migrations;
pub(crate) mod tables;

pub(crate) use migrations::{check, migrate};

/// Identifies the files of this program: `anst` in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x616e_7374;
