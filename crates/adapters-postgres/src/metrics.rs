//! The metrics of the adapter: those of every storage, and the gauge of connections to PostgreSQL.

pub(crate) use animal_store_adapter_kit::metrics::Count;
use animal_store_adapter_kit::metrics::{Labels, QueueMetrics, registered};
use prometheus_client::{metrics::family::Family, registry::Registry};

use crate::purpose::Purpose;

pub(crate) struct Metrics {
    reads: QueueMetrics,
    creates: QueueMetrics,
    keyed_creates: QueueMetrics,
    read_connections: ConnectionMetrics,
    create_connections: ConnectionMetrics,
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
        let [reads, creates, keyed_creates] =
            QueueMetrics::register(registry, ["read", "create", "create_with_key"]);
        let help = "Connections to PostgreSQL that are connecting, connected or unavailable";
        let registry = registry.sub_registry_with_prefix("postgres");
        let connections: Family<Labels<2>, Count> =
            registered(registry, "connections", help, Family::default());
        let of_purpose = |purpose| {
            let count =
                |state| connections.get_or_create_owned(&[("purpose", purpose), ("state", state)]);
            ConnectionMetrics {
                connecting: count("connecting"),
                connected: count("connected"),
                unavailable: count("unavailable"),
            }
        };
        Self {
            reads,
            creates,
            keyed_creates,
            read_connections: of_purpose("reads"),
            create_connections: of_purpose("creates"),
        }
    }

    /// The metrics of the queue for this purpose.
    pub(crate) const fn queue(&self, purpose: Purpose) -> &QueueMetrics {
        match purpose {
            Purpose::Reads => &self.reads,
            Purpose::Creates => &self.creates,
            Purpose::KeyedCreates => &self.keyed_creates,
        }
    }

    pub(crate) const fn connections(&self, purpose: Purpose) -> &ConnectionMetrics {
        match purpose {
            Purpose::Reads => &self.read_connections,
            Purpose::Creates | Purpose::KeyedCreates => &self.create_connections,
        }
    }
}
