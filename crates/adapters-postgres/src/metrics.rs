//! The metrics of the adapter: the section "PostgreSQL" of `docs/metrics.md`.
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
    pub(crate) gets: KindMetrics,
    pub(crate) lists: KindMetrics,
    pub(crate) lists_by_status: KindMetrics,
    pub(crate) creates: KindMetrics,
    pub(crate) keyed_creates: KindMetrics,
    pub(crate) read_connections: ConnectionMetrics,
    pub(crate) create_connections: ConnectionMetrics,
    pub(crate) readiness_connections: ConnectionMetrics,
    pub(crate) commits: Counter,
    pub(crate) unknown_outcomes: Counter,
    pub(crate) swept_keys: Counter,
}

/// Metrics of one kind of request, over all workers.
#[derive(Clone)]
pub(crate) struct KindMetrics {
    pub(crate) queued: Count,
    pub(crate) queue_limit: Count,
    pub(crate) refused: Counter,
    /// In seconds.
    pub(crate) queue_wait: Histogram,
    pub(crate) batch_size: Histogram,
    /// In seconds.
    pub(crate) batch_duration: Histogram,
    pub(crate) retries: Counter,
    pub(crate) timeouts: Counter,
}

/// Metrics of the connections with one purpose.
#[derive(Clone)]
pub(crate) struct ConnectionMetrics {
    pub(crate) connecting: Count,
    pub(crate) connected: Count,
    pub(crate) unavailable: Count,
    pub(crate) reconnects: Counter,
}

/// One thing that a gauge counts until this is dropped.
pub(crate) struct Counted(Count);

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let by_kind = KindMetrics::families(registry);
        let by_purpose = ConnectionMetrics::families(registry);
        let mut counter = |name, help| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        Self {
            gets: by_kind("get"),
            lists: by_kind("list"),
            lists_by_status: by_kind("list_by_status"),
            creates: by_kind("create"),
            keyed_creates: by_kind("create_with_key"),
            read_connections: by_purpose("reads"),
            create_connections: by_purpose("creates"),
            readiness_connections: by_purpose("readiness"),
            commits: counter("commits", "Transactions of creates that were committed"),
            unknown_outcomes: counter(
                "unknown_outcomes",
                "Creates that PostgreSQL did not confirm: the pet may have been added",
            ),
            swept_keys: counter("swept_idempotency_keys", "Expired idempotency keys that this instance deleted"),
        }
    }
}

impl KindMetrics {
    fn families(registry: &mut Registry) -> impl Fn(&'static str) -> Self + use<> {
        // A commit waits for the disk, and a timeout is a minute at most.
        let seconds = || {
            Histogram::new([
                50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
            ])
        };
        let sizes = || Histogram::new(exponential_buckets(1.0, 2.0, 11));
        let queued = family(registry, "queue_requests", "Requests that wait to be sent to PostgreSQL", Count::default);
        let queue_limit =
            family(registry, "queue_limit", "Maximum number of requests that wait, over all workers", Count::default);
        let refused =
            family(registry, "queue_refused", "Requests refused because the queue was full", Counter::default);
        let queue_wait =
            family(registry, "queue_wait_seconds", "Time that a request waited before its batch was sent", seconds);
        let batch_size = family(registry, "batch_requests", "Requests in a batch", sizes);
        let batch_duration =
            family(registry, "batch_duration_seconds", "Time from sending a batch to its response or failure", seconds);
        let retries = family(
            registry,
            "batch_retries",
            "Batches that failed and were executed again in smaller batches",
            Counter::default,
        );
        let timeouts = family(
            registry,
            "timeouts",
            "Requests that had no response within storage.postgres.timeout",
            Counter::default,
        );
        move |kind| {
            let labels = [("kind", kind)];
            Self {
                queued: queued.get_or_create_owned(&labels),
                queue_limit: queue_limit.get_or_create_owned(&labels),
                refused: refused.get_or_create_owned(&labels),
                queue_wait: queue_wait.get_or_create_owned(&labels),
                batch_size: batch_size.get_or_create_owned(&labels),
                batch_duration: batch_duration.get_or_create_owned(&labels),
                retries: retries.get_or_create_owned(&labels),
                timeouts: timeouts.get_or_create_owned(&labels),
            }
        }
    }
}

impl ConnectionMetrics {
    fn families(registry: &mut Registry) -> impl Fn(&'static str) -> Self + use<> {
        let connections = family(
            registry,
            "connections",
            "Connections to PostgreSQL that are connecting, connected or unavailable",
            Count::default,
        );
        let reconnects = family(
            registry,
            "reconnects",
            "Connections that were opened in place of one that was lost",
            Counter::default,
        );
        move |purpose| {
            let in_state = |state| connections.get_or_create_owned(&[("purpose", purpose), ("state", state)]);
            Self {
                connecting: in_state("connecting"),
                connected: in_state("connected"),
                unavailable: in_state("unavailable"),
                reconnects: reconnects.get_or_create_owned(&[("purpose", purpose)]),
            }
        }
    }
}

impl Counted {
    pub(crate) fn new(count: &Count) -> Self {
        count.inc();
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
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
