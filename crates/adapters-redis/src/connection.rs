//! Connections to Redis.
//!
//! **Problem.** A URL can demand TLS that verifies nothing, or certificates that are never used. A connection can hang.
//!
//! **Invariant.** An endpoint that was parsed is usable as configured. Opening a connection and each response have a
//! timeout. The server is a master; with Sentinels, most of them name it. The reason for a failure names the server,
//! says what to do, and contains no password.
//!
//! **Proof.** `endpoint/tests.rs`; in `tests/redis`: `connections.rs` for endpoints and reasons, `lookups.rs` and
//! `links.rs` for timeouts, `sentinels.rs`.

mod connect;
mod endpoint;
mod error;
mod sentinels;
mod tls;
mod url;

pub(crate) use connect::{check_role, describe, is_cut};
// Clones share the connection.
pub(crate) use redis::aio::MultiplexedConnection as Connection;

pub use endpoint::RedisEndpoint;
pub use error::RedisEndpointError;
pub use tls::{RedisClientCertificate, RedisTls};
