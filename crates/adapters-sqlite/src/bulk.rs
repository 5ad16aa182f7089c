//! Pets in bulk: exports, imports, copies and backups, while the service uses the file.
//!
//! **Problem.** An export takes minutes, and pets are added meanwhile. An import must not stop creates for longer than
//! a batch takes, and an import that was interrupted must not add a pet twice when it is resumed.
//!
//! **Invariant.** A snapshot is one read transaction, so each of its pages shows the same state (`snapshot`). A batch
//! and the progress of its import are one commit, which fails if another process has recorded other progress (`pets`,
//! `imports`). A taken id never changes the pet that has it. Calls hold at most one batch or page in memory.
//!
//! **Proof.** The contract suite `bulk_storage`, and in `tests/sqlite`: `bulk_pets.rs` and `bulk_snapshots.rs`.

mod connection;
mod error;
mod idempotency_records;
mod imports;
mod pets;
mod snapshot;
mod snapshot_file;
mod storage;

pub use snapshot_file::SnapshotFileError;
pub use storage::SqliteBulkStorage;
