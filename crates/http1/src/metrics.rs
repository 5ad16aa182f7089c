//! Metrics of the connections of a server. Their names and texts are those of `docs/metrics.md`.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};
use tokio::runtime::{Handle, RuntimeMetrics};

use crate::{
    connection::ConnectionLimit, limits::ConnectionLimits, tls::CurrentTlsIdentity,
    warnings::OncePerMinute,
};

/// Handles of the metrics of a server. Clones share them. The default ones are in no registry.
#[derive(Debug, Clone, Default)]
pub struct ConnectionMetrics {
    pub(crate) open: Gauge,
    pub(crate) accepted: Counter,
    pub(crate) full: Counter,
    refused: Family<Reason, Counter>,
    workers: Workers,
    /// Warnings that every connection is in use.
    pub(crate) full_warnings: Arc<OncePerMinute<()>>,
}

/// The label `reason`, with the name of a limit.
type Reason = [(&'static str, &'static str); 1];

/// The runtimes of the workers, which are read at each scrape.
#[derive(Debug, Clone, Default)]
struct Workers(Arc<Mutex<Vec<RuntimeMetrics>>>);

impl ConnectionMetrics {
    /// Registers the metrics of a server with these limits and this identity.
    pub fn register(
        registry: &mut Registry,
        limits: &ConnectionLimits,
        tls: Option<&CurrentTlsIdentity>,
    ) -> Self {
        let metrics = Self::default();
        registry.register(
            "connections_open",
            "Open connections of clients, including those that wait for http.max_connections",
            metrics.open.clone(),
        );
        registry.register(
            "connections_limit",
            "Maximum number of connections of clients that are served at the same time",
            ConstGauge::new(limits.served_connections() as u64),
        );
        registry.register(
            "connections_accepted",
            "Connections that clients opened",
            metrics.accepted.clone(),
        );
        registry.register(
            "connections_full",
            "Connections that clients opened while http.max_connections were in use",
            metrics.full.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections closed because of a limit: max_connections or max_unsent_bytes",
            metrics.refused.clone(),
        );
        // A counter that appears with its first refusal has no increase that an alert could see.
        for limit in [
            ConnectionLimit::MaxConnections,
            ConnectionLimit::MaxUnsentBytes,
        ] {
            metrics.refused(limit);
        }
        if let Some(tls) = tls {
            registry.register(
                "tls_certificate_expiry_timestamp_seconds",
                "End of the TLS certificate in use, in seconds since 1970",
                tls.expiry.clone(),
            );
        }
        registry.register_collector(Box::new(metrics.workers.clone()));
        metrics
    }

    /// Returns the counter of the connections that are closed because of a limit.
    pub(crate) fn refused(&self, limit: ConnectionLimit) -> Counter {
        self.refused
            .get_or_create_owned(&[("reason", limit.as_str())])
    }

    /// Adds the current thread as a worker.
    pub(crate) fn add_worker(&self) {
        let mut workers = self
            .workers
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        workers.push(Handle::current().metrics());
    }
}

impl Collector for Workers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time in which an HTTP worker was not idle.";
        let mut family =
            encoder.encode_descriptor("worker_busy_seconds", help, None, MetricType::Counter)?;
        let workers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, worker) in workers.iter().enumerate() {
            let busy = worker.worker_total_busy_duration(0).as_secs_f64();
            ConstCounter::new(busy).encode(family.encode_family(&[("worker", index)])?)?;
        }
        Ok(())
    }
}
