//! The metrics of the adapter: the section "PostgreSQL" of `docs/metrics.md`. A request is counted before its response
//! is sent, so that metrics never lag behind a client.

pub(crate) use animal_store_adapter_kit::metrics::Count;
use animal_store_adapter_kit::{
    metrics::{batch_sizes, counter, family, seconds},
    queue::QueueMetrics,
};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

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
    pub(crate) queue: QueueMetrics,
    pub(crate) batch_size: Histogram,
    /// In seconds.
    pub(crate) batch_duration: Histogram,
    pub(crate) retries: Counter,
    pub(crate) timeouts: Counter,
}

/// Metrics of the connections with one purpose.
#[derive(Clone)]
pub(crate) struct ConnectionMetrics {
    /// The first attempt is in flight.
    pub(crate) connecting: Count,
    pub(crate) connected: Count,
    pub(crate) unavailable: Count,
    pub(crate) reconnects: Counter,
}

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let kinds = ["get", "list", "list_by_status", "create", "create_with_key"];
        let [gets, lists, lists_by_status, creates, keyed_creates] = KindMetrics::of(kinds, registry);
        let [read_connections, create_connections, readiness_connections] =
            ConnectionMetrics::of(["reads", "creates", "readiness"], registry);
        let unknown = "Creates that PostgreSQL did not confirm: the pet may have been added";
        let swept = "Expired idempotency keys that this instance deleted";
        Self {
            gets,
            lists,
            lists_by_status,
            creates,
            keyed_creates,
            read_connections,
            create_connections,
            readiness_connections,
            commits: counter(registry, "commits", "Transactions of creates that were committed"),
            unknown_outcomes: counter(registry, "unknown_outcomes", unknown),
            swept_keys: counter(registry, "swept_idempotency_keys", swept),
        }
    }
}

impl KindMetrics {
    /// Registers the metrics of these kinds.
    pub(crate) fn of<const N: usize>(kinds: [&'static str; N], registry: &mut Registry) -> [Self; N] {
        let waiting = family(registry, "queue_requests", "Requests that wait to be sent to PostgreSQL", Count::default);
        let limit =
            family(registry, "queue_limit", "Maximum number of requests that wait, over all workers", Count::default);
        let refused =
            family(registry, "queue_refused", "Requests refused because the queue was full", Counter::default);
        let wait =
            family(registry, "queue_wait_seconds", "Time that a request waited before its batch was sent", seconds);
        let batch_size = family(registry, "batch_requests", "Requests in a batch", batch_sizes);
        let batch_duration =
            family(registry, "batch_duration_seconds", "Time from sending a batch to its response or failure", seconds);
        let retries = "Batches that failed and were executed again in smaller batches";
        let retries = family(registry, "batch_retries", retries, Counter::default);
        let timeouts = "Requests that had no response within storage.postgres.timeout";
        let timeouts = family(registry, "timeouts", timeouts, Counter::default);
        kinds.map(|kind| {
            let labels = [("kind", kind)];
            Self {
                queue: QueueMetrics {
                    waiting: waiting.get_or_create_owned(&labels),
                    limit: limit.get_or_create_owned(&labels),
                    refused: refused.get_or_create_owned(&labels),
                    wait: wait.get_or_create_owned(&labels),
                },
                batch_size: batch_size.get_or_create_owned(&labels),
                batch_duration: batch_duration.get_or_create_owned(&labels),
                retries: retries.get_or_create_owned(&labels),
                timeouts: timeouts.get_or_create_owned(&labels),
            }
        })
    }
}

impl ConnectionMetrics {
    /// Registers the metrics of connections for these purposes.
    fn of<const N: usize>(purposes: [&'static str; N], registry: &mut Registry) -> [Self; N] {
        let connections = "Connections to PostgreSQL that are connecting, connected or unavailable";
        let connections = family(registry, "connections", connections, Count::default);
        let reconnects = "Connections that were opened in place of one that was lost";
        let reconnects = family(registry, "reconnects", reconnects, Counter::default);
        purposes.map(|purpose| {
            let [connecting, connected, unavailable] = ["connecting", "connected", "unavailable"]
                .map(|state| connections.get_or_create_owned(&[("purpose", purpose), ("state", state)]));
            let reconnects = reconnects.get_or_create_owned(&[("purpose", purpose)]);
            Self { connecting, connected, unavailable, reconnects }
        })
    }
}
