//! Guarantees of the servers on which other tests rely.

mod fault_proxy;
mod postgres;
