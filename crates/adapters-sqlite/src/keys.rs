//! API keys in the file: their administration, their lookup, and the record of their uses.
//!
//! **Problem.** A query for each request would cost more than the request, and other processes change keys while this
//! one serves requests. SQLite notifies no process of a change.
//!
//! **Invariant.** The directory holds all valid tokens in memory. A thread compares the version of the keys in the
//! file, which each change increases, at least every 50 ms, and reads the tokens again when it differs (`follower`). A
//! lookup trusts the tokens until 100 ms after the beginning of the last successful check, and otherwise waits for the
//! next one: a revoked key is accepted for 100 ms at most, whatever delays the thread (`checked`, `directory`). Changes
//! are transactions that exclude each other (`store`). A use is noted in memory, and written once a minute (`uses`).
//!
//! **Proof.** The contract suites `api_key_directory`, `api_key_store` and `api_key_uses`; in `tests/sqlite`:
//! `keys_revocations.rs`, `keys_changes.rs`, `keys_corrupt.rs` and `keys_uses.rs`.

mod bulk;
mod checked;
mod directory;
mod error;
mod follower;
mod metrics;
mod store;
mod tokens;
mod use_rows;
mod uses;

pub(crate) use self::{bulk::records, error::port_error};
pub use directory::SqliteApiKeyDirectory;
pub use store::SqliteApiKeyStore;
pub use uses::{SqliteApiKeyUses, SqliteUseRecorder};
