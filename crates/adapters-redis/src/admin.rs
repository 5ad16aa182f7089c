//! Administration of API keys. `ApiKeyChange::apply` has the rules; Redis has the keys.
//!
//! **Problem.** Several programs may change keys at the same time. Redis may be full, a permission may be missing, and
//! a connection may fail after a command was sent.
//!
//! **Invariant.** Changes and lists are transactions that watch the index, which each change of a key writes
//! (`transaction`). If another change comes first, they are retried; if a command is not permitted, none is applied. An
//! error reply means that nothing was applied; after any other failure of a write the outcome is unknown.
//!
//! | call | reads | writes in one step | writes afterwards |
//! |---|---|---|---|
//! | add, rotate | `HGET` the entry of the index, `HMGET` tokens, `TIME` | `HSET` and `PEXPIREAT` or `DEL` each token that changes, `HSET` the entry, `ZADD` to the audit log, `ZREMRANGEBYSCORE` and `ZREMRANGEBYRANK` to bound it | `ZREM` the uses of an earlier key with the id, see clean up |
//! | import | the same | the same without the audit log | `ZREM` the same |
//! | revoke | the same | `EVAL` of a script: `DEL` the tokens, `HDEL` the entry | the audit log, `ZREM` the uses of the key, see clean up |
//! | clean up | `HRANDFIELD` some entries, `HMGET` their tokens | for each key that has expired, the same script, `ZREM` its uses | |
//! | confirm | | if the change wrote nothing, `HSET` and `HDEL` of an entry without a name | `WAIT` |
//! | list | `HGETALL` the index, `HMGET` tokens | | |
//! | list of uses, audit log | `ZRANGE`, `HGETALL` the index | | |
//!
//! Each transaction is `WATCH`, `MULTI` and `EXEC`. `WAIT` confirms the writes of a connection on replicas: without a
//! write, servers since Redis 7.2 count all replicas. A revocation is a script, because a full Redis refuses commands
//! in a transaction and executes a script that only deletes. Its entry in the audit log follows it, and is logged if
//! Redis refuses it. Clean up may fail: what stays is harmless.
//!
//! **Proof.** The contract suite `api_key_store` (concurrent changes), and in `tests/redis`: `revocations.rs` (changes
//! between two steps), `refusals.rs`, `permissions.rs` and `corrupt.rs`.

mod audit;
mod change;
mod clean_up;
mod index;
mod store;
mod token;
mod transaction;

pub use store::RedisApiKeyStore;
