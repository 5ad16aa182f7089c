//! The metrics of the adapter: those of every storage, and the gauge of connections to PostgreSQL.

pub(crate) use animal_store_adapter_kit::metrics::Count;
use animal_store_adapter_kit::metrics::{Labels, QueueMetrics, registered};
use prometheus_client::{metrics::family::Family, registry::Registry};

pub(crate) struct Metrics {
    /// Of gets, lists, and lists by status.
    pub(crate) reads: [QueueMetrics; 3],
    pub(crate) creates: QueueMetrics,
    pub(crate) keyed_creates: QueueMetrics,
    pub(crate) read_connections: ConnectionMetrics,
    pub(crate) create_connections: ConnectionMetrics,
}

/// Numbers of connections with one purpose.
#[derive(Clone)]
pub(crate) struct ConnectionMetrics {
    /// The first attempt is in flight.
    pub(crate) connecting: Count,
    pub(crate) connected: Count,
    pub(crate) unavailable: Count,
}

impl Metrics {
    /// Registers the metrics.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let [gets, lists, lists_by_status, creates, keyed_creates] = QueueMetrics::register(
            registry,
            ["get", "list", "list_by_status", "create", "create_with_key"],
        );
        let help = "Connections to PostgreSQL that are connecting, connected or unavailable";
        let registry = registry.sub_registry_with_prefix("postgres");
        let connections: Family<Labels<2>, Count> =
            registered(registry, "connections", help, Family::default());
        let [read_connections, create_connections] = ["reads", "creates"].map(|purpose| {
            let [connecting, connected, unavailable] = ["connecting", "connected", "unavailable"]
                .map(|state| {
                    connections.get_or_create_owned(&[("purpose", purpose), ("state", state)])
                });
            ConnectionMetrics {
                connecting,
                connected,
                unavailable,
            }
        });
        let reads = [gets, lists, lists_by_status];
        Self {
            reads,
            creates,
            keyed_creates,
            read_connections,
            create_connections,
        }
    }
}
