//! The content of the file in bulk, for copies and backups, while the service uses the file.
//!
//! **Problem.** A copy takes minutes, and pets are added meanwhile. It may be interrupted at any moment.
//!
//! **Invariant.** A snapshot is one read transaction, so each of its pages shows the same state (`snapshot`), API keys
//! included. Pets and records that are added are one commit each (`storage`). A backup gets its name when it is
//! complete (`backup`). Calls hold at most one page in memory.
//!
//! **Proof.** The contract suite `bulk_storage`, and `tests/sqlite/bulk.rs`.

mod backup;
mod records;
mod snapshot;
mod storage;

use animal_store_app::ports::StoreFailure;

pub use backup::{BackupError, NewBackup};
pub use snapshot::SqliteSnapshot;
pub use storage::SqliteBulkStorage;

use crate::{
    SqliteFile,
    change::{AccessError, Failure},
};

/// A failed access to pets. A rejected change contains a pet whose id is taken.
type BulkError = AccessError<IdTaken>;

/// Another pet has the id of a pet.
#[derive(Debug)]
pub(crate) struct IdTaken;

/// Converts an error into that of the port.
fn port_error(error: BulkError, file: &SqliteFile) -> StoreFailure {
    match error.into_failure(file.path()) {
        Failure::Unavailable(cause) => StoreFailure::Unavailable(cause),
        Failure::OutcomeUnknown(cause) => StoreFailure::OutcomeUnknown(cause),
        Failure::Corrupt(cause) => StoreFailure::Corrupt(cause),
        Failure::Refused(IdTaken) => StoreFailure::IdTaken,
    }
}
