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

use crate::{limits::ConnectionLimits, tls::current::CurrentTlsIdentity, warnings::OncePerMinute};

/// Handles of the metrics of a server. Clones share them. The default ones are in no registry.
#[derive(Debug, Clone, Default)]
pub struct ConnectionMetrics {
    pub(crate) open: Gauge,
    pub(crate) accepted: Counter,
    pub(crate) full: Counter,
    /// Connections that were closed because of `http.max_connections`.
    pub(crate) max_connections: Counter,
    /// Connections that were closed because of the bytes that responses hold.
    pub(crate) max_unsent_bytes: Counter,
    workers: Workers,
    /// Warnings that every connection is in use.
    pub(crate) full_warnings: Arc<OncePerMinute<()>>,
}

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
        let mut metrics = Self::default();
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
        let refused = Family::<[(&str, &str); 1], Counter>::default();
        registry.register(
            "connections_refused",
            "Connections closed because of a limit: max_connections or max_unsent_bytes",
            refused.clone(),
        );
        let refused = |limit| refused.get_or_create_owned(&[("reason", limit)]);
        metrics.max_connections = refused("max_connections");
        metrics.max_unsent_bytes = refused("max_unsent_bytes");
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

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[tokio::test]
    async fn each_worker_has_its_busy_time() {
        let mut registry = Registry::default();
        let limits = ConnectionLimits::default();
        let metrics = ConnectionMetrics::register(&mut registry, &limits, None);
        for _ in 0..2 {
            metrics.add_worker();
        }
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        for worker in 0..2 {
            let series = format!("\nworker_busy_seconds_total{{worker=\"{worker}\"}} ");
            assert!(text.contains(&series), "{text}");
        }
    }
}
