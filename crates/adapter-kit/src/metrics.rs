//! Families of metrics.
//!
//! Every handle is made when an adapter starts: each series exists from then on, and no request needs a lookup by
//! labels.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Metric, Registry},
};

/// A gauge that counts things.
pub type Count = Gauge<u64, AtomicU64>;

/// Names of labels, with their values.
pub type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Registers a counter without labels.
pub fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    let counter = Counter::default();
    registry.register(name, help, counter.clone());
    counter
}

/// Registers a counter for each value of a label, and returns them in this order.
pub fn counters<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    values: [&'static str; N],
) -> [Counter; N] {
    let family = family(registry, name, help, Counter::default);
    values.map(|value| family.get_or_create_owned(&[(label, value)]))
}

/// Registers a family of metrics, which `new_metric` creates.
pub fn family<M, const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    new_metric: fn() -> M,
) -> Family<Labels<N>, M>
where
    Family<Labels<N>, M>: Metric,
    Labels<N>: EncodeLabelSet,
{
    let family = Family::new_with_constructor(new_metric);
    registry.register(name, help, family.clone());
    family
}

/// Creates a histogram of seconds, from a read in memory to a timeout.
pub fn seconds() -> Histogram {
    Histogram::new([
        50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    ])
}

/// Creates a histogram of the sizes of batches.
pub fn batch_sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 11))
}
