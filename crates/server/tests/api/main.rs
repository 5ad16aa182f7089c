//! What needs the whole server over a real socket: bytes, connections and their end, the order of checks, and once for
//! each operation and storage that it is connected.
//!
//! The tests of `adapters-http` own the tables of valid and invalid values, the contract suites of `app` those of each
//! storage. Pets are in memory here; the tests of the program have them in SQLite and PostgreSQL.

mod authentication;
mod bounds;
mod check_order;
mod compression;
mod cors;
mod deprecation;
mod drain;
mod explorer;
mod headers;
mod management;
mod metrics;
mod prelude;
mod public_url;
mod rate_limits;
mod raw_http;
mod raw_requests;
mod raw_uploads;
mod refusals;
mod routes;
mod storage;
mod test_app;
