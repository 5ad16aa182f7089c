//! Families of metrics.
//!
//! Every handle is made when an adapter starts: each series exists from then on, and no request needs a lookup by
//! labels.

use std::sync::atomic::AtomicU64;

use animal_store_app::ports::StoreFailure;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry},
};

/// A gauge that counts things.
pub type Count = Gauge<u64, AtomicU64>;

/// Names of labels, with their values.
pub type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Metrics of one kind of request for pets, over all workers.
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    /// Time that a request waited before its batch began, in seconds.
    pub wait: Histogram,
    /// Time of a batch, in seconds.
    pub batch_duration: Histogram,
    /// Failed requests of all kinds.
    pub failures: FailureCounters,
}

/// Counters of the failures of a store.
#[derive(Debug, Clone)]
pub struct FailureCounters([Counter; 5]);

impl QueueMetrics {
    /// Registers the metrics of these kinds of requests, with the prefix `storage`.
    pub fn register<const N: usize>(
        registry: &mut Registry,
        kinds: [&'static str; N],
    ) -> [Self; N] {
        let registry = registry.sub_registry_with_prefix("storage");
        let new: fn() -> Histogram = seconds;
        let family = || Family::<Labels<1>, Histogram, _>::new_with_constructor(new);
        let help = "Time that a request waited before its batch began";
        let waits = registered(registry, "queue_wait_seconds", help, family());
        let help = "Time from the beginning of a batch to its response or failure";
        let durations = registered(registry, "batch_duration_seconds", help, family());
        let failures =
            FailureCounters::register(registry, "failures", "Requests for pets that failed");
        kinds.map(|kind| Self {
            wait: waits.get_or_create_owned(&[("kind", kind)]),
            batch_duration: durations.get_or_create_owned(&[("kind", kind)]),
            failures: failures.clone(),
        })
    }
}

impl FailureCounters {
    /// Registers a counter for each reason. The help text begins with `failed`, which says what has failed.
    pub fn register(registry: &mut Registry, name: &str, failed: &str) -> Self {
        let reasons = [
            "timeout",
            "unavailable",
            "overloaded",
            "corrupt",
            "outcome_unknown",
        ];
        let help = format!("{failed}: {}", reasons.join(", "));
        Self(counters(registry, name, &help, "reason", reasons))
    }

    /// Counts a failure by its reason.
    pub fn count(&self, failure: &StoreFailure) {
        let [timeout, unavailable, overloaded, corrupt, outcome_unknown] = &self.0;
        let counter = match failure {
            StoreFailure::Timeout => timeout,
            StoreFailure::Unavailable(_) => unavailable,
            StoreFailure::Overloaded => overloaded,
            StoreFailure::Corrupt(_) => corrupt,
            StoreFailure::OutcomeUnknown(_) => outcome_unknown,
        };
        counter.inc();
    }
}

/// Registers a counter for each value of a label, and returns them in this order.
pub fn counters<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    values: [&'static str; N],
) -> [Counter; N] {
    let family: Family<Labels<1>, Counter> = registered(registry, name, help, Family::default());
    values.map(|value| family.get_or_create_owned(&[(label, value)]))
}

/// Registers a metric or a family, and returns it.
pub fn registered<M: Metric + Clone>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    metric: M,
) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Creates a histogram of seconds, from a read in memory to a timeout.
fn seconds() -> Histogram {
    Histogram::new([
        50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5,
        1.0, 2.5, 10.0,
    ])
}
