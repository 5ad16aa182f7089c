//! The program as an operator meets it: its command line, its output, its exit codes, its signals.

mod command_line;
mod configuration;
mod first_steps;
mod guide;
mod idempotency;
mod idempotency_crashes;
mod idempotency_log;
mod instances;
mod keys;
mod keys_refused;
mod killed;
mod log;
mod permissions;
mod postgres;
mod program;
mod secrets;
mod signals;
mod starting;
mod tokens_in_output;
