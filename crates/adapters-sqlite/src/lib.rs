//! Pets and API keys in one SQLite file.
//!
//! [`SqliteFile`] checks the file and keeps it open. [`SqliteStorage`] exists once per process, with the writer of
//! pets; each worker has a [`SqlitePetRepository`] of its own. [`SqliteApiKeyStore`] changes API keys, and starts their
//! directory.
//!
//! `pet_repository` shows every request. `session` is the way from asynchronous code to the file. Each other module
//! solves one problem and says at its top which invariant it holds and which test proves that: `file` (opening, checks,
//! identity), `schema` (migrations), `reads`, `creates`, `bulk` (copies), `backup` and `keys`. `diagnosis` is for
//! `animal-store doctor`. A new member of a pet touches a migration and `pet_row.rs`.

#![warn(clippy::future_not_send)]

mod backup;
mod bulk;
mod creates;
mod diagnosis;
mod error;
mod file;
mod keys;
mod pet_repository;
mod pet_row;
mod readiness;
mod reads;
mod schema;
mod session;
mod settings;
mod storage;
mod values;
mod way_to_write;

pub use backup::NewBackup;
pub use bulk::SqliteBulkStorage;
pub use diagnosis::diagnose;
pub use error::SqliteFileError;
pub use file::{FileUse, SqliteFile};
pub use keys::SqliteApiKeyStore;
pub use pet_repository::SqlitePetRepository;
pub use settings::SqliteSettings;
pub use storage::SqliteStorage;
