//! The adapter against real PostgreSQL servers.

mod contract;
mod encodings;
mod encryption;
mod histories;
mod hosts;
mod migration_files;
mod migrations;
mod pooled;
mod pooled_reads;
mod pooler;
mod start;
mod store;
mod unix_socket;
