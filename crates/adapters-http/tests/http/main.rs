//! The HTTP interface over mocks of the ports.

mod failing_ports;
mod log_line;
mod scopes;
mod service;
