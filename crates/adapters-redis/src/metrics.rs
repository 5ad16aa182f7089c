//! Metrics of API keys. `docs/metrics.md` has their names and meanings.
//!
//! The gauge of the lease is computed when the metrics are read, see `lookup/directory.rs`.

use animal_store_adapter_kit::metrics::counters;
use animal_store_app::ports::StoreFailure;
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Handles of the metrics of a directory.
pub(crate) struct Metrics {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    /// In the order of [`Self::count_failure`].
    failures: [Counter; 4],
    pub(crate) connected: Gauge,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let help = "Lookups of API keys: hit in the cache, or miss";
        let [hits, misses] = counters(registry, "cache_lookups", help, "result", ["hit", "miss"]);
        let help = "Lookups without a result: timeout, unavailable, overloaded or corrupt";
        let reasons = ["timeout", "unavailable", "overloaded", "corrupt"];
        let failures = counters(registry, "lookup_failures", help, "reason", reasons);
        let connected = Gauge::default();
        registry.register("redis_connected", "1 if the session with Redis is up, otherwise 0", connected.clone());
        Self { hits, misses, failures, connected }
    }

    pub(crate) fn count_failure(&self, failure: &StoreFailure) {
        let [timeout, unavailable, overloaded, corrupt] = &self.failures;
        let counter = match failure {
            StoreFailure::Timeout => timeout,
            StoreFailure::Unavailable(_) | StoreFailure::OutcomeUnknown(_) => unavailable,
            StoreFailure::Overloaded => overloaded,
            StoreFailure::Corrupt(_) => corrupt,
        };
        counter.inc();
    }
}
