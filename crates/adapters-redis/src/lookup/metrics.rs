use std::{fmt, sync::Arc};

use animal_store_adapter_kit::metrics::{FailureCounters, counters, registered};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        MetricType,
        counter::Counter,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

use super::lease::Lease;
use crate::concurrency::Instant;

/// Handles of the metrics of a directory. The gauge of the lease is computed when the metrics are read.
pub(super) struct Metrics {
    pub(super) hits: Counter,
    pub(super) misses: Counter,
    pub(super) failures: FailureCounters,
    pub(super) connected: Gauge,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry, lease: Arc<Lease>) -> Self {
        let registry = registry.sub_registry_with_prefix("keys");
        registry.register_collector(Box::new(LeaseGauge(lease)));
        let help = "Lookups of API keys: hit in the cache, or miss";
        let [hits, misses] = counters(registry, "cache_lookups", help, "result", ["hit", "miss"]);
        let help = "Lookups of API keys without a result";
        let failures = FailureCounters::register(registry, "lookup_failures", help);
        let help = "1 if the session with Redis is up, otherwise 0";
        let connected = registered(registry, "redis_connected", help, Gauge::default());
        Self {
            hits,
            misses,
            failures,
            connected,
        }
    }
}

#[derive(Debug)]
struct LeaseGauge(Arc<Lease>);

impl Collector for LeaseGauge {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let help = "Time for which cached API keys are still accepted if Redis sends nothing more; 0 after a time without requests";
        let remaining = ConstGauge::new(self.0.remaining(Instant::now()).as_secs_f64());
        remaining.encode(encoder.encode_descriptor(
            "lease_remaining_seconds",
            help,
            None,
            MetricType::Gauge,
        )?)
    }
}
