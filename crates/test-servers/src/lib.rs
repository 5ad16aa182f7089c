//! Throw-away servers for tests, a proxy that misbehaves, and an HTTP client.
//!
//! Everything is on a free port of 127.0.0.1 and in a temporary folder, ends with the value that stands for it, and
//! also where the test is killed. For dev-dependencies only.
#![expect(clippy::missing_panics_doc, reason = "a server that does not start fails the test")]

mod certificates;
mod fault_proxy;
mod home;
mod http_client;
mod pg_database;
mod pgbouncer;
mod port;
mod postgres;
mod postgres_data;
mod programs;
mod psql;
mod raw_connection;
mod redis;
mod redis_space;
mod response;
mod watched;

pub use certificates::Certificates;
pub use fault_proxy::FaultProxy;
pub use http_client::{HttpClient, Request};
pub use pg_database::PgDatabase;
pub use pgbouncer::PgBouncer;
pub use postgres::PostgresServer;
pub use raw_connection::RawConnection;
pub use redis::RedisServer;
pub use redis_space::RedisSpace;
pub use response::Response;
