//! Guarantees of the servers on which other tests rely.

mod postgres;
