//! Lookup of API keys without a round trip to Redis.
//!
//! **Problem.** A round trip per request costs more than the request itself. An ordinary cache accepts a revoked key
//! until its entry expires.
//!
//! **Invariant.** A cached entry is used only if Redis confirmed, less than one lease ago, that it is up to date:
//! 1. A lookup registers its token before it queries Redis. An invalidation of the token removes the entry and the
//!    registration, so that nothing that was read before a change is cached after it (`cache`).
//! 2. A session, a pair of connections, begins when Redis has confirmed that it will send invalidations, and with an
//!    empty cache: when a session ends, the cache is cleared, and lookups wait for the next one (`session`, `state`).
//! 3. Entries are valid until one lease (`keys.redis.lease`) after the last answered heartbeat was sent. Redis
//!    sends the response behind the invalidations of every change that was acknowledged before the heartbeat, and with
//!    its role: a replica is not believed (`lease`).
//!
//! **Proof.** In `tests/redis`: `in_flight.rs` for rules 1 and 2, `links.rs` for rules 2 and 3. `cache/schedules.rs`:
//! orders of steps.

mod cache;
mod directory;
mod lease;
mod metrics;
mod session;
mod state;

pub use directory::RedisApiKeyDirectory;
pub(crate) use session::tracking_command;
