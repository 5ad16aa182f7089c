//! The animal store as a program: command line, configuration, wiring, start and shutdown.
//!
//! The only crate that depends on every other crate. [`Application`] is the service that the program runs and that the
//! black-box tests start. [`Config`] holds the settings of an operator. Everything else is private.

mod application;
mod backends;
mod certificates;
mod cli;
pub mod config;
mod listeners;
mod reload;
mod service_manager;
mod shutdown;
mod version;
mod wiring;

pub use application::Application;
pub use cli::run;
pub use config::Config;
pub use shutdown::Signals;
