//! The metrics of the adapter: the section "SQLite" of `docs/metrics.md`.
//!
//! Every handle is made when the storage starts: each series exists from then on, and no request needs a lookup by
//! labels. A request is counted before its response is sent, so that metrics never lag behind a client.

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

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// A gauge that counts things.
pub(crate) type Count = Gauge<u64, AtomicU64>;

pub(crate) struct Metrics {
    pub(crate) reads: QueueMetrics,
    pub(crate) creates: QueueMetrics,
    pub(crate) get_timeouts: Counter,
    pub(crate) list_timeouts: Counter,
    pub(crate) create_timeouts: Counter,
    pub(crate) commits: Counter,
    pub(crate) batch_size: Histogram,
    /// In seconds.
    pub(crate) commit_duration: Histogram,
    pub(crate) unknown_outcomes: Counter,
    pub(crate) swept_keys: Counter,
}

/// Metrics of one queue.
#[derive(Clone)]
pub(crate) struct QueueMetrics {
    pub(crate) waiting: Count,
    pub(crate) limit: Count,
    pub(crate) refused: Counter,
}

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let by_queue = QueueMetrics::families(registry);
        let timeouts = family(
            registry,
            "timeouts",
            "Requests that had no response within storage.sqlite.timeout",
            Counter::default,
        );
        let timeouts = |kind| timeouts.get_or_create_owned(&[("kind", kind)]);
        // A commit waits for the disk.
        let commit_duration = Histogram::new([
            50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
        ]);
        let batch_size = Histogram::new(exponential_buckets(1.0, 2.0, 11));
        registry.register("batch_requests", "Creates in a transaction", batch_size.clone());
        registry.register("commit_duration_seconds", "Time of a commit of creates", commit_duration.clone());
        let mut counter = |name, help| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        Self {
            reads: by_queue("reads"),
            creates: by_queue("creates"),
            get_timeouts: timeouts("get"),
            list_timeouts: timeouts("list"),
            create_timeouts: timeouts("create"),
            commits: counter("commits", "Transactions of creates that were committed"),
            batch_size,
            commit_duration,
            unknown_outcomes: counter(
                "unknown_outcomes",
                "Creates that SQLite did not confirm: the pet may have been added",
            ),
            swept_keys: counter("swept_idempotency_keys", "Expired idempotency keys that this instance deleted"),
        }
    }
}

impl QueueMetrics {
    fn families(registry: &mut Registry) -> impl Fn(&'static str) -> Self + use<> {
        let waiting = family(registry, "queue_requests", "Requests that wait for a thread", Count::default);
        let limit = family(registry, "queue_limit", "Maximum number of requests that wait", Count::default);
        let refused =
            family(registry, "queue_refused", "Requests refused because the queue was full", Counter::default);
        move |queue| {
            let labels = [("queue", queue)];
            Self {
                waiting: waiting.get_or_create_owned(&labels),
                limit: limit.get_or_create_owned(&labels),
                refused: refused.get_or_create_owned(&labels),
            }
        }
    }
}

fn family<M, const N: usize>(
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
