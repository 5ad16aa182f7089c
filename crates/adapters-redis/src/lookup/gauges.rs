use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue},
    metrics::MetricType,
};

use super::state::LookupState;
use crate::concurrency::Instant;

/// The gauges that are computed when the metrics are read.
pub(crate) struct LookupGauges(pub(crate) Arc<LookupState>);

impl Collector for LookupGauges {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let LookupState { cache, lease, .. } = &*self.0;
        encode(&mut encoder, "cache_entries", "Tokens in the cache", &cache.entries())?;
        let help = "Lookups in Redis that have no response yet";
        encode(&mut encoder, "lookups_in_flight", help, &cache.lookups_in_flight())?;
        let help = "Time for which cached API keys are still accepted if Redis sends nothing more";
        let remaining = lease.remaining(Instant::now()).as_secs_f64();
        encode(&mut encoder, "lease_remaining_seconds", help, &remaining)
    }
}

fn encode(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: &impl EncodeGaugeValue) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(value)
}

impl fmt::Debug for LookupGauges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LookupGauges")
    }
}
