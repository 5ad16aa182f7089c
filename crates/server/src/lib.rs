//! The animal store as a program: configuration, wiring, logs, start and shutdown.
//!
//! The only crate that knows every other one. [`Application`] is what the program runs and what the black-box tests
//! start.

pub mod application;
pub mod cli;
pub mod config;
mod file_limit;
mod first_steps;
mod random;
mod shutdown;
mod telemetry;
mod wiring;

pub use application::Application;
pub use config::Config;
