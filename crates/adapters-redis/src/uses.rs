//! Uses of API keys, recorded in Redis for `animal-store keys list`.
//!
//! **Problem.** A write to Redis for each request would cost more than the request, and would fail with Redis. A lock
//! that all workers share would slow them down.
//!
//! **Invariant.** Each worker has a recorder with a lock of its own, which otherwise only the writer takes, once in an
//! interval (`recorder`). In each interval, and once more after the last recorder is dropped, the writer writes the
//! notes of all workers in one batch. A write never moves a time backwards. After a failed write, the uses stay pending
//! for the next one, up to a bound, and the failure is logged once (`writer`).
//!
//! **Proof.** The contract suite `api_key_uses`, and `tests/redis/uses.rs`.

mod recorder;
mod writer;

pub use recorder::UseRecorder;
pub use writer::RedisApiKeyUses;
