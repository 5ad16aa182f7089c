//! What tests rely on.

mod fault_proxy;
mod pg_bouncer;
mod pg_database;
mod postgres;
