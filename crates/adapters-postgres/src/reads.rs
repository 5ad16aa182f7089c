//! Reads in batches.
//!
//! **Problem.** A worker has many reads in flight and few connections. A connection per read costs PostgreSQL a
//! process, and a statement per read costs it more than the rows. A bad plan reads the whole table.
//!
//! **Invariant.** Each kind of read has batches of its own: gets, lists, and lists by status. Each read gets what its
//! own statement would have returned, and every plan is an index scan. Behind a pooler, each batch is a transaction
//! that leaves nothing on the server's connection.
//!
//! **Proof.** In `tests/postgres`: `read_batches.rs`, `read_failures.rs`, `read_plans.rs` (EXPLAIN on empty, small,
//! skewed and large tables), `pooler.rs` (PgBouncer).

mod query;
mod session;

pub(crate) use self::session::{List, Read, ReadSession};
