//! The HTTP interface over ports that do as they are told.

mod cors;
mod failing_ports;
mod request_line;
mod scopes;
mod served;
