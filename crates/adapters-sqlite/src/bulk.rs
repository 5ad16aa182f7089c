//! The content of the file in bulk, for copies and backups, while the service uses the file.
//!
//! **Problem.** A copy takes minutes, and pets are added meanwhile. It may be interrupted at any moment.
//!
//! **Invariant.** A snapshot is one read transaction, so each of its pages shows the same state (`snapshot`). Pets and records that are added are one commit each (`storage`). A backup gets its name when it is
//! complete (`backup`). Calls hold at most one page in memory.
//!
//! **Proof.** The contract suite `bulk_storage`, and `tests/sqlite/bulk.rs`.

mod backup;
mod records;
mod snapshot;
mod storage;

pub use backup::{BackupError, NewBackup};
pub use snapshot::SqliteSnapshot;
pub use storage::SqliteBulkStorage;
