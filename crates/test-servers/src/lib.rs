//! Throw-away servers for tests, and a proxy that misbehaves.
//!
//! Everything is on a free port of 127.0.0.1 and in a temporary folder, ends with the value that stands for it, and
//! also where the test is killed. For dev-dependencies only.
#![expect(clippy::missing_panics_doc, reason = "a server that does not start fails the test")]

mod certificates;
mod fault_proxy;
mod port;
mod redis;
mod redis_space;

pub use certificates::Certificates;
pub use fault_proxy::FaultProxy;
pub use redis::RedisServer;
pub use redis_space::RedisSpace;
