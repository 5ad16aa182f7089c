//! API keys in the file: their changes, their directory, and the record of their uses.
//!
//! **Problem.** Other processes change keys while this one serves requests, and SQLite notifies no process of a change.
//!
//! **Invariant.** A change is one transaction (`store`), which increases the version of all keys and records it in the
//! row of the key. So a directory reads one number to find that nothing has changed, and otherwise the changed keys. The row of a revoked key stays for them, without tokens; a key without valid
//! tokens exists for no reader (`rows`). A use is noted in memory, and written once a minute (`uses`).
//!
//! **Proof.** The contract suites `api_key_directory`, `api_key_store` and `api_key_uses`; in `tests/sqlite`:
//! `keys_revocations.rs`, `keys_changes.rs`, `keys_corrupt.rs` and `keys_uses.rs`.

mod rows;
mod store;
mod uses;

pub use self::store::SqliteApiKeyStore;
