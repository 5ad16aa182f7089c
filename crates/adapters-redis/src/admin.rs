//! Administration of API keys: add, list, rotate, revoke, and export and import of all keys.
//!
//! **Problem.** Several programs may change keys at the same time. Redis may be full, a permission may be missing, and
//! a connection may fail after a command was sent.
//!
//! **Invariant.** Additions, rotations, imports and lists are transactions that watch the index, which each change of a
//! key writes (`change`). If another change comes first, they are retried; if a command is not permitted, none is
//! applied. A revocation is a script, because a full Redis refuses transactions: in one step, it deletes the tokens and
//! the entry of the index, if the entry is the one that was read (`index`). An error reply means that nothing was
//! applied; after any other failure of a write the outcome is unknown.
//!
//! **Proof.** The contract suites `api_key_store` (concurrent changes) and `bulk_api_keys`, and in `tests/redis`:
//! `revocations.rs` (changes between two steps), `refusals.rs`, `permissions.rs` and `corrupt.rs`.

mod bulk_api_keys;
mod change;
mod error;
mod index;
mod store;
mod stored_token;

pub use store::RedisApiKeyStore;
