//! The HTTP interface over mocks of the ports.

mod cors;
mod failing_ports;
mod guesses;
mod overload;
mod request_line;
mod revocation;
mod scopes;
mod service;
mod slow_service;
