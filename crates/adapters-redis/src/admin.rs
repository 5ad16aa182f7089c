//! Administration of API keys. `ApiKeyChange::apply` has the rules; Redis has the keys.
//!
//! **Problem.** Several programs may change keys at the same time. Redis may be full, a permission may be missing, and
//! a connection may fail after a command was sent.
//!
//! **Invariant.** Changes and lists are transactions that watch the index, which each change of a key writes
//! (`transaction`). If another change comes first, they are retried; if a command is not permitted, none is applied. A
//! revocation ends with a script, because a full Redis refuses commands in a transaction: in one step, it deletes the
//! tokens and the entry of the index, if the entry is the one that was read (`stored_key`). An error reply means that
//! nothing was applied; after any other failure of a write the outcome is unknown. The record of a revocation follows
//! it, and is logged if Redis refuses it; other changes are recorded in their transactions.
//!
//! **Proof.** The contract suite `api_key_store` (concurrent changes), and in `tests/redis`: `revocations.rs` (changes
//! between two steps), `refusals.rs`, `permissions.rs` and `corrupt.rs`.

mod audit;
mod store;
mod stored_key;
mod transaction;

pub use store::RedisApiKeyStore;
