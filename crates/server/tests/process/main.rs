//! The program as an operator uses it: command line, output, exit codes, signals.

mod command_line;
mod configuration;
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
mod pets;
mod postgres;
mod program;
mod quickstart;
mod secrets;
mod signals;
mod slow_readers;
mod starting;
mod tokens_in_output;
mod unread_output;
