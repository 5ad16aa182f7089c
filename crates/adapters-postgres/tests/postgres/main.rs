//! The adapter against real PostgreSQL servers.

mod batches;
mod calls;
mod contract;
mod encodings;
mod encryption;
mod endings;
mod errors;
mod faults;
mod group_commit;
mod histories;
mod hosts;
mod migration_files;
mod migrations;
mod outcome;
mod pooled;
mod pooled_reads;
mod pooler;
mod read_only;
mod reads;
mod refusals;
mod session;
mod start;
mod starts;
mod store;
mod storm;
mod unix_socket;
