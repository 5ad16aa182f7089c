//! API keys in a database with SQL: what a change does to the tables is written once, for SQLite and PostgreSQL.
//!
//! **Problem.** Several processes change keys and serve requests at the same time. A disk may be full, and a permission
//! or a table may be missing.
//!
//! **Invariant.** A change is one transaction (`change`), which takes the lock of the version and increases it, so that
//! versions become visible in their order: a directory that has read a version has seen all changes up to it, and reads
//! the changed keys only (`reads`). The row of a revoked key stays for directories, without tokens. A key without valid
//! tokens exists for no other reader. A revocation waits for no lock that an instance can take: its entry in the audit
//! log is a transaction after its commit, which may fail (`store`), and the uses of the key stay until another key gets its
//! id. A list has the uses of keys that exist.
//!
//! **Proof.** The suites that run on both databases: `test_support`, and the contracts `api_key_store`,
//! `api_key_directory` and `api_key_uses`; the tests `keys*.rs` of both adapters.

mod audit;
mod change;
mod reads;
mod sql;
mod statements;
mod store;
mod uses;

pub use self::{
    audit::{audit_kept_since, log_unknown_revocation, log_unrecorded_revocation},
    reads::{key_state, read_delta},
    sql::{Access, KeyDatabase, KeySession, Row, Sql, Value},
    statements::SELECT_STATE,
    store::SqlApiKeyStore,
    uses::SqlUses,
};
