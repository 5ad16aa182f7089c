//! The HTTP interface over mocks of the ports.

mod abort;
mod cors;
mod failing_ports;
mod metrics;
mod overload;
mod request_line;
mod scopes;
mod service;
