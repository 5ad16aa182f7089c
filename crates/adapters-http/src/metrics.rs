//! Metrics of the API listener, and `/metrics` on the management listener.
//!
//! **Problem.** An operator needs to see load, errors and latency, and counting must not slow down the requests that it
//! describes: workers that share a counter wait for its cache line, and a histogram of prometheus-client takes a lock.
//!
//! **Invariant.** Each worker has its own counters ([`counts`]), which are added up when they are read ([`collector`]).
//! A request costs a few additions and no allocation. No label has a value that a client chose ([`labels`]), so the
//! number of series is bounded. [`docs/metrics.md`](../../../../docs/metrics.md) lists every metric.
//!
//! **Proof.** `server/tests/api/metrics.rs` makes each metric move and counts series after odd paths, methods and keys;
//! `server/tests/process/metrics_documentation.rs` compares the response with the document.

mod collector;
mod counts;
mod durations;
pub(crate) mod exposition;
mod labels;

pub(crate) use self::{
    collector::{HttpCollector, ServerMetrics},
    counts::WorkerMetrics,
    labels::{ConnectionLimit, HandshakeResult, RequestLabels, Shed},
};
