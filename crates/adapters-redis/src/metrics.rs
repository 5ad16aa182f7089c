//! Metrics of API keys. `docs/metrics.md` has their names and meanings.
//!
//! The handles are made once: a cached lookup costs one atomic addition. The gauges of the cache and of the lease are
//! computed when the metrics are read, see `lookup/gauges.rs`.

use animal_store_app::ports::StoreFailure;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Bounds of the durations of lookups, in seconds.
const SECONDS: [f64; 13] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Handles of the metrics of a directory.
pub(crate) struct Metrics {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) invalidations: Counter,
    pub(crate) lookup_duration: Histogram,
    /// In the order of [`Self::count_failure`].
    failures: [Counter; 4],
    pub(crate) connected: Gauge,
    pub(crate) reconnects: Counter,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let name = "cache_lookups";
        let help = "Lookups of API keys: hit in the cache, or miss";
        let [hits, misses] = register_series(registry, name, help, "result", ["hit", "miss"]);
        let name = "lookup_failures";
        let help = "Lookups without a result: timeout, unavailable, overloaded or corrupt";
        let reasons = ["timeout", "unavailable", "overloaded", "corrupt"];
        let failures = register_series(registry, name, help, "reason", reasons);
        let metrics = Self {
            hits,
            misses,
            invalidations: Counter::default(),
            lookup_duration: Histogram::new(SECONDS),
            failures,
            connected: Gauge::default(),
            reconnects: Counter::default(),
        };
        let help = "Messages of Redis that invalidated entries of the cache";
        registry.register("cache_invalidations", help, metrics.invalidations.clone());
        let help = "Time of a successful lookup in Redis";
        registry.register("lookup_duration_seconds", help, metrics.lookup_duration.clone());
        let help = "1 if the session with Redis is up, otherwise 0";
        registry.register("redis_connected", help, metrics.connected.clone());
        let help = "Sessions with Redis that were opened after one was lost";
        registry.register("redis_reconnects", help, metrics.reconnects.clone());
        metrics
    }

    pub(crate) fn count_failure(&self, error: &StoreFailure) {
        let [timeout, unavailable, overloaded, corrupt] = &self.failures;
        let counter = match error {
            StoreFailure::Timeout => timeout,
            StoreFailure::Unavailable(_) => unavailable,
            StoreFailure::Overloaded => overloaded,
            StoreFailure::Corrupt(_) => corrupt,
        };
        counter.inc();
    }
}

/// Registers a counter for each value of a label, and returns them in this order.
pub(crate) fn register_series<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    values: [&'static str; N],
) -> [Counter; N] {
    let family = Family::<[(&str, &str); 1], Counter>::default();
    let counters = values.map(|value| family.get_or_create_owned(&[(label, value)]));
    registry.register(name, help, family);
    counters
}
