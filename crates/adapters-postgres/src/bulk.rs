//! The content of a database in bulk, for export, import, copy, backup and restore.
//!
//! **Problem.** A command reads or writes millions of rows beside a running service. It may be interrupted at any
//! moment, and pets that keep their ids must not take the id of a pet that the service is about to create.
//!
//! **Invariant.** A snapshot is one transaction, read in pages of index scans. A batch and the progress of its import
//! are one transaction: all of it is stored or nothing, or its outcome is reported as unknown. Before pets with ids are
//! inserted, no create that could assign one of their ids is in flight, and the sequence is beyond them. The sequence
//! never moves backwards.
//!
//! **Proof.** The contract suite `bulk_storage`, and in `tests/postgres`: `bulk_ids.rs` (concurrent creates),
//! `bulk_faults.rs` (lost connections), `bulk_rows.rs` (times, invalid rows), `bulk_rights.rs` (a restricted user).

mod bulk_connection;
mod bulk_storage;
mod id_reservation;
mod import_steps;
mod pet_batch;
mod records;
mod snapshot;

pub use bulk_storage::PgBulkStorage;
