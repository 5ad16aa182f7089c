//! Throw-away servers for tests, and a proxy that misbehaves.
//!
//! Everything is on a free port of 127.0.0.1 and in a temporary folder, ends with the value that stands for it, and
//! also where the test is killed. For dev-dependencies only.
#![expect(clippy::missing_panics_doc, reason = "a server that does not start fails the test")]

mod certificates;
mod fault_proxy;
mod home;
mod pg_database;
mod pgbouncer;
mod port;
mod postgres;
mod postgres_data;
mod programs;
mod psql;
mod redis;
mod redis_space;
mod watched;

pub use certificates::Certificates;
pub use fault_proxy::FaultProxy;
pub use pg_database::PgDatabase;
pub use pgbouncer::PgBouncer;
pub use postgres::PostgresServer;
pub use redis::RedisServer;
pub use redis_space::RedisSpace;
