//! The adapter against real PostgreSQL servers.

mod contract;
mod store;
