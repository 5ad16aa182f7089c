//! Pets and API keys in one SQLite file.
//!
//! [`SqliteFile`] checks the file and keeps it open. [`SqliteStorage`] exists once per process: its threads read and
//! write pets, and all workers share its [`SqlitePetRepository`].
//!
//! `pet_repository` shows every request. Each module with a folder solves one problem and says at its top which
//! invariant it holds and which test proves that: `file` (opening, checks, identity), `schema` (tables, migrations),
//! `reads`, `creates`, `bulk` (copies, backups) and `keys`. `diagnosis` is for `animal-store doctor`. A new member of a
//! pet touches a migration and `schema/tables.rs`, and `pet_row.rs`.

#![warn(clippy::future_not_send)]

mod bulk;
mod change;
mod concurrency;
mod creates;
mod diagnosis;
mod error;
mod file;
mod keys;
mod metrics;
mod pet_repository;
mod pet_row;
#[cfg(test)]
mod problems;
mod queue;
mod readiness;
mod reads;
mod scalar;
mod schema;
mod settings;
mod sqlite_file_error;
mod storage;
mod threads;
mod time;

pub use bulk::{BackupError, NewBackup, SqliteBulkStorage, SqliteSnapshot};
pub use diagnosis::diagnose;
pub use file::SqliteFile;
pub use keys::{SqliteApiKeyDirectory, SqliteApiKeyStore, SqliteApiKeyUses, SqliteUseRecorder};
pub use pet_repository::SqlitePetRepository;
pub use settings::SqliteSettings;
pub use sqlite_file_error::SqliteFileError;
pub use storage::SqliteStorage;
