//! The servers of tests do what tests rely on.

mod pg_bouncer;
mod pg_database;
mod postgres;
