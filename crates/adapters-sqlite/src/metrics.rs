//! The metrics of the adapter: the section "SQLite" of `docs/metrics.md`.

use animal_store_adapter_kit::{
    metrics::{Count, batch_sizes, counter, counters, family, seconds},
    queue::QueueMetrics,
};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

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

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let [reads, creates] = queues(registry);
        let help = "Requests that had no response in time";
        let timeouts = counters(registry, "timeouts", help, "kind", ["get", "list", "create"]);
        let [get_timeouts, list_timeouts, create_timeouts] = timeouts;
        let (batch_size, commit_duration) = (batch_sizes(), seconds());
        registry.register("batch_requests", "Creates in a transaction", batch_size.clone());
        registry.register("commit_duration_seconds", "Time of a commit of creates", commit_duration.clone());
        let commits = counter(registry, "commits", "Transactions of creates that were committed");
        let help = "Creates that SQLite did not confirm: the pet may have been added";
        let unknown_outcomes = counter(registry, "unknown_outcomes", help);
        let help = "Expired idempotency keys that this instance deleted";
        let swept_keys = counter(registry, "swept_idempotency_keys", help);
        Self {
            reads,
            creates,
            get_timeouts,
            list_timeouts,
            create_timeouts,
            commits,
            batch_size,
            commit_duration,
            unknown_outcomes,
            swept_keys,
        }
    }
}

/// Returns the metrics of the queues of reads and creates.
fn queues(registry: &mut Registry) -> [QueueMetrics; 2] {
    let waiting = family(registry, "queue_requests", "Requests that wait for a batch", Count::default);
    let help = "Maximum number of requests that wait, over all workers";
    let limit = family(registry, "queue_limit", help, Count::default);
    let help = "Requests refused because the queue was full";
    let refused = family(registry, "queue_refused", help, Counter::default);
    let wait = family(registry, "queue_wait_seconds", "Time that a request waited before its batch began", seconds);
    ["reads", "creates"].map(|queue| {
        let labels = [("queue", queue)];
        QueueMetrics {
            waiting: waiting.get_or_create_owned(&labels),
            limit: limit.get_or_create_owned(&labels),
            refused: refused.get_or_create_owned(&labels),
            wait: wait.get_or_create_owned(&labels),
        }
    })
}
