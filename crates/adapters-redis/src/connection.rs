//! Connections to Redis, and retries.
//!
//! **Problem.** A URL can demand TLS that verifies nothing, or certificates that are never used. A connection can hang.
//! Retries without pauses load a Redis that is starting, and fill the log.
//!
//! **Invariant.** An endpoint that was parsed is usable as configured. Opening a connection and each response have a
//! timeout. Pauses between retries grow, and each reason for a failure is logged once. A reason
//! names the server and contains no password.
//!
//! **Proof.** In `tests/redis`: `connections.rs` for endpoints, `messages.rs` for reasons, `links.rs` for timeouts and
//! retries. `a_reason_is_logged_once` in `retry`.

mod connect;
mod endpoint;
mod failure;
mod retry;

// Clones share the connection.
pub(crate) use connect::ConnectError;
pub(crate) use failure::describe;
pub(crate) use redis::aio::MultiplexedConnection as Connection;
pub(crate) use retry::{Retry, backoff};

pub use endpoint::{RedisEndpoint, RedisEndpointError, RedisTls};
