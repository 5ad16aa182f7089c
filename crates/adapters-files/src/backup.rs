//! Backups: everything that a store contains, in one NDJSON file that every storage can be restored from.
//!
//! **Problem.** A backup that is incomplete or damaged is noticed on the day it is needed, or after half of it was
//! restored. **Invariant.** A backup is read to its end, and its digest is checked, before anything is taken from it.
//! It contains digests of tokens, never tokens. **Proof.** `tests/files/backups.rs`.

mod api_key_line;
mod end_line;
mod file;
mod hex_digest;
mod idempotency_line;
mod reader;
mod snapshot;
mod writer;

pub use self::{file::BackupFile, writer::BackupWriter};
