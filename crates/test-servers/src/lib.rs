//! Temporary servers for tests, a proxy that simulates faults, and an HTTP client. For dev-dependencies only.
//!
//! Each server listens on a free port of 127.0.0.1 and keeps its data in a temporary folder. It ends when its value is
//! dropped, and also when the test process is killed.
#![expect(
    clippy::missing_panics_doc,
    reason = "a server that does not start fails the test"
)]

mod certificates;
mod exposition;
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
mod response;
mod sentinel;
mod server;
mod wait;
mod watched;

pub use certificates::{Certificates, tls_client};
pub use exposition::sample;
pub use fault_proxy::FaultProxy;
pub use http_client::{HttpClient, Request};
pub use pg_database::{PgDatabase, PgUser};
pub use pgbouncer::PgBouncer;
pub use postgres::{Postgres, PostgresServer};
pub use raw_connection::RawConnection;
pub use redis::{Redis, RedisServer};
pub use response::Response;
pub use sentinel::{Sentinel, SentinelServer};
pub use server::Server;
pub use wait::wait_until;
