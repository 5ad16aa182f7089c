//! The sum of what the workers of the API listener count. Its names and texts are those of `docs/metrics.md`.

use std::{
    fmt, slice,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        gauge::ConstGauge,
    },
};
use tokio::runtime::{Handle, RuntimeMetrics};

use super::{
    counts::{STATUSES, WorkerMetrics},
    durations::Durations,
    labels::{ConnectionLimit, HandshakeResult, Idempotency, Operation, RequestLabels, Shed},
};
use crate::{middleware::in_flight::InFlight, transport::tls::identity::CurrentTlsIdentity};

/// Counts of the workers of a server.
#[derive(Debug, Default)]
pub(crate) struct ServerMetrics(Mutex<Vec<Worker>>);

#[derive(Debug, Clone)]
struct Worker {
    counts: Arc<WorkerMetrics>,
    runtime: RuntimeMetrics,
}

/// Encodes the metrics of the API listener, summed over its workers.
#[derive(Debug)]
pub(crate) struct HttpCollector {
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) in_flight: InFlight,
    pub(crate) max_connections: usize,
    pub(crate) tls: Option<CurrentTlsIdentity>,
}

impl ServerMetrics {
    /// Adds the counts of a worker, which calls this on its own thread.
    pub(crate) fn add_worker(&self) -> Arc<WorkerMetrics> {
        let counts = Arc::<WorkerMetrics>::default();
        let worker = Worker { counts: Arc::clone(&counts), runtime: Handle::current().metrics() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        counts
    }

    fn workers(&self) -> Vec<Worker> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Collector for HttpCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families { encoder, workers: self.metrics.workers() };
        families.responses()?;
        families.durations()?;
        families.gauge(
            "requests_in_flight",
            "Requests in flight, including those that wait for their body.",
            self.in_flight.count() as u64,
        )?;
        families.gauge("requests_in_flight_limit", "Value of http.max_in_flight.", self.in_flight.max() as u64)?;
        families.counters(
            "requests_shed",
            "Requests refused because of a limit: in_flight, key_share, rate_limit, auth_failures, storage_queue or \
             key_lookups.",
            ("reason", &Shed::ALL.map(Shed::as_str)),
            |worker| &worker.shed,
        )?;
        families.counters(
            "deprecated_requests",
            "Authenticated requests for a deprecated operation.",
            ("operation", &[Operation::GetPet.as_str()]),
            |worker| slice::from_ref(&worker.deprecated),
        )?;
        families.counters(
            "idempotency",
            "Creates with an idempotency key that was used before: replayed, conflict or mismatch.",
            ("outcome", &Idempotency::ALL.map(Idempotency::as_str)),
            |worker| &worker.idempotency,
        )?;
        let ended = families.sum(|worker| &worker.connections_ended);
        let accepted = families.sum(|worker| &worker.connections_accepted);
        families.gauge(
            "connections_open",
            "Open connections of clients, including those that wait for http.max_connections.",
            accepted.saturating_sub(ended),
        )?;
        families.gauge(
            "connections_limit",
            "Maximum number of connections of clients that are served at the same time.",
            self.max_connections as u64,
        )?;
        families.counter("connections_accepted", "Connections that clients opened.", accepted)?;
        families.counters(
            "connections_refused",
            "Connections closed because of a limit: max_connections or max_unsent_bytes.",
            ("reason", &ConnectionLimit::ALL.map(ConnectionLimit::as_str)),
            |worker| &worker.connections_refused,
        )?;
        if let Some(tls) = &self.tls {
            families.counters(
                "tls_handshakes",
                "TLS handshakes: complete, failed, timeout, or stopped by a shutdown.",
                ("result", &HandshakeResult::ALL.map(HandshakeResult::as_str)),
                |worker| &worker.handshakes,
            )?;
            families.gauge(
                "tls_certificate_expiry_timestamp_seconds",
                "End of the TLS certificate in use, in seconds since 1970.",
                tls.get().expiry_timestamp(),
            )?;
        }
        let received = families.sum(|worker| &worker.received_bytes);
        families.counter("received_bytes", "Bytes received from clients.", received)?;
        let sent = families.sum(|worker| &worker.sent_bytes);
        families.counter("sent_bytes", "Bytes sent to clients.", sent)?;
        families.busy()
    }
}

/// Encodes families of metrics, one after the other.
struct Families<'a> {
    encoder: DescriptorEncoder<'a>,
    workers: Vec<Worker>,
}

impl Families<'_> {
    fn sum(&self, count: impl Fn(&WorkerMetrics) -> &Counter) -> u64 {
        self.workers.iter().map(|worker| count(&worker.counts).get()).sum()
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        ConstGauge::new(value).encode(self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        ConstCounter::new(value).encode(self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
    }

    /// Encodes counters that differ in the value of one label.
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        (label, values): (&str, &[&str]),
        counts: impl Fn(&WorkerMetrics) -> &[Counter],
    ) -> fmt::Result {
        let sums: Vec<_> = (0..values.len()).map(|index| self.sum(|worker| &counts(worker)[index])).collect();
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value, sum) in values.iter().zip(sums) {
            ConstCounter::new(sum).encode(family.encode_family(&[(label, *value)])?)?;
        }
        Ok(())
    }

    fn responses(&mut self) -> fmt::Result {
        let help = "Responses sent by the API listener.";
        let mut family = self.encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for labels in RequestLabels::all() {
            let texts = [("operation", labels.operation.as_str()), ("method", labels.method.as_str())];
            for status in STATUSES {
                let sum: u64 = self.workers.iter().map(|worker| worker.counts.responses(labels, status)).sum();
                if sum > 0 || labels.expects(status) {
                    ConstCounter::new(sum).encode(family.encode_family(&(texts, [("status", status)]))?)?;
                }
            }
        }
        Ok(())
    }

    fn durations(&mut self) -> fmt::Result {
        let help = "Time from the head of a request to its response.";
        let mut family =
            self.encoder.encode_descriptor("request_duration_seconds", help, None, MetricType::Histogram)?;
        for operation in Operation::ALL {
            let durations = self.workers.iter().map(|worker| &worker.counts.durations[operation as usize]);
            Durations::encode(durations, family.encode_family(&[("operation", operation.as_str())])?)?;
        }
        Ok(())
    }

    fn busy(&mut self) -> fmt::Result {
        let help = "Time in which an HTTP worker was not idle.";
        let mut family = self.encoder.encode_descriptor("worker_busy_seconds", help, None, MetricType::Counter)?;
        for (index, worker) in self.workers.iter().enumerate() {
            let busy = worker.runtime.worker_total_busy_duration(0);
            ConstCounter::new(busy.as_secs_f64()).encode(family.encode_family(&[("worker", index)])?)?;
        }
        Ok(())
    }
}
