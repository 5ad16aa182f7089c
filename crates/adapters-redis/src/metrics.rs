//! Metrics of API keys. `docs/metrics.md` has their names and meanings.
//!
//! The gauge of the lease is computed when the metrics are read, see `lookup/directory.rs`.

use animal_store_adapter_kit::metrics::{FailureCounters, counters, registered};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Handles of the metrics of a directory.
pub(crate) struct Metrics {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) failures: FailureCounters,
    pub(crate) connected: Gauge,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let help = "Lookups of API keys: hit in the cache, or miss";
        let [hits, misses] = counters(registry, "cache_lookups", help, "result", ["hit", "miss"]);
        let failures = FailureCounters::register(registry, "lookup_failures", "Lookups of API keys without a result");
        let help = "1 if the session with Redis is up, otherwise 0";
        let connected = registered(registry, "redis_connected", help, Gauge::default());
        Self { hits, misses, failures, connected }
    }
}
