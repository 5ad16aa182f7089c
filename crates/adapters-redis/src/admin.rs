//! Administration of API keys: add, list, rotate, revoke, and export and import of all keys.
//!
//! **Problem.** Several programs may change keys at the same time. Redis may be full, a permission may be missing, and
//! a connection may fail after a command was sent.
//!
//! **Invariant.** Additions, rotations and imports are transactions that watch the index, which each change of a key
//! writes. If another change comes first, they are retried; if a command is not permitted, none is applied. A
//! revocation deletes tokens without a transaction, which a full Redis would refuse. An error reply means that nothing
//! was applied; after any other failure of a write the outcome is unknown.
//!
//! **Proof.** The contract suites `api_key_store` (concurrent changes) and `bulk_api_keys`, and in `tests/redis`:
//! `refusals.rs`, `permissions.rs` and `corrupt.rs`.

mod bulk_api_keys;
mod error;
mod store;
mod stored_token;

pub use store::RedisApiKeyStore;
