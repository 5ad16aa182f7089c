//! Metrics of the API listener, and `/metrics` on the management listener.
//!
//! **Problem.** An operator needs to see load, errors and latency, and counting must not slow down the requests that it
//! describes.
//!
//! **Invariant.** A request costs one lookup by labels and a few additions, less than 0.1 µs. No label has a value that
//! a client chose, so the number of series is bounded. [`docs/metrics.md`](../../../../docs/metrics.md) lists every
//! metric.
//!
//! **Proof.** `server/tests/api/metrics.rs` reads the counts of requests;
//! `server/tests/process/metrics_documentation.rs` compares the response with the document.

mod hosts;

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    time::Duration,
};

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    dev::ServiceResponse,
    http::{Method, StatusCode},
    web::Data,
};
use animal_store_app::ports::Cause;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

pub(crate) use self::hosts::Hosts;
use crate::{
    error::{ApiError, ExceededLimit},
    pets::{OPERATIONS, Operation, get::DEPRECATED_OPERATION},
    request_record::RequestRecord,
};

/// Bounds of the buckets for the durations of requests, in seconds.
const DURATION_BUCKETS: [f64; 14] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];

/// The labels of a request with another path or method than those of the operations.
const NO_OPERATION: &str = "none";
const OTHER_METHOD: &str = "other";

/// The only label of a metric: its name and its value.
type Label = [(&'static str, &'static str); 1];

/// Metrics of the API listener. All workers share them.
#[derive(Debug)]
pub(crate) struct HttpMetrics {
    responses: Family<ResponseLabels, Counter>,
    /// By the name of the operation. Unlike in a family, a lookup takes no lock.
    durations: BTreeMap<&'static str, Histogram>,
    shed: Family<Label, Counter>,
    /// Requests for the only deprecated operation.
    deprecated: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, EncodeLabelSet)]
struct ResponseLabels {
    operation: &'static str,
    method: &'static str,
    status: u16,
}

/// To hash every text costs more than to compare the few labels with one status.
impl Hash for ResponseLabels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.status.hash(state);
    }
}

impl HttpMetrics {
    /// Registers the metrics. The names and texts are those of `docs/metrics.md`. A counter that appears with its first
    /// increase has no increase that an alert could see, so those of an alert begin at 0.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let responses = Family::default();
        registry.register(
            "requests",
            "Responses sent by the API listener",
            responses.clone(),
        );
        for operation in &OPERATIONS {
            for status in [operation.success, 500, 503] {
                let labels = ResponseLabels {
                    operation: operation.name,
                    method: operation.method,
                    status,
                };
                drop(responses.get_or_create(&labels));
            }
        }
        let family = Family::<Label, Histogram, _>::new_with_constructor(|| {
            Histogram::new(DURATION_BUCKETS)
        });
        registry.register(
            "request_duration_seconds",
            "Time from a complete request to its response",
            family.clone(),
        );
        let operations = OPERATIONS.iter().map(|operation| operation.name);
        let mut durations = BTreeMap::new();
        for name in operations.chain([NO_OPERATION]) {
            let histogram = family.get_or_create_owned(&[("operation", name)]);
            durations.insert(name, histogram);
        }
        let shed = Family::<Label, Counter>::default();
        registry.register(
            "requests_shed",
            "Requests refused because of a limit: in_flight, key_share, rate_limit, auth_failures, storage_queue or \
             key_lookups",
            shed.clone(),
        );
        for limit in ExceededLimit::ALL {
            drop(shed.get_or_create(&[("reason", limit.as_str())]));
        }
        let deprecated = Family::<Label, Counter>::default();
        registry.register(
            "deprecated_requests",
            "Authenticated requests for a deprecated operation",
            deprecated.clone(),
        );
        let deprecated = deprecated.get_or_create_owned(&[("operation", DEPRECATED_OPERATION)]);
        Self {
            responses,
            durations,
            shed,
            deprecated,
        }
    }

    /// Counts a response of the application.
    pub(crate) fn count_response<B>(&self, response: &ServiceResponse<B>, duration: Duration) {
        let request = response.request();
        let path = request.match_info().as_str();
        let operation = Operation::find(request.method(), path);
        let operation = operation.map_or(NO_OPERATION, |operation| operation.name);
        let labels = ResponseLabels {
            operation,
            method: method_label(request.method()),
            status: response.status().as_u16(),
        };
        self.responses.get_or_create(&labels).inc();
        if let Some(histogram) = self.durations.get(operation) {
            histogram.observe(duration.as_secs_f64());
        }
        let extensions = request.extensions();
        let record = extensions.get::<RequestRecord>();
        if record.is_some_and(|record| record.deprecated) {
            self.deprecated.inc();
        }
        if let Some(error) = ApiError::of(response.response())
            && let Some(limit) = error.exceeded_limit()
        {
            self.shed.get_or_create(&[("reason", limit.as_str())]).inc();
        }
    }

    /// Counts a response to a request that was refused before the application received it.
    pub(crate) fn count_refusal(&self, status: StatusCode) {
        let labels = ResponseLabels {
            operation: NO_OPERATION,
            method: OTHER_METHOD,
            status: status.as_u16(),
        };
        self.responses.get_or_create(&labels).inc();
    }
}

/// Returns a method of the interface. A client can send any other text.
fn method_label(method: &Method) -> &'static str {
    if method == Method::HEAD {
        return "HEAD";
    }
    let mut methods = OPERATIONS.iter().map(|operation| operation.method);
    methods
        .find(|known| method == known)
        .unwrap_or(OTHER_METHOD)
}

/// 200 with every metric of the registry, or 421 for a host that is not admitted.
pub(crate) async fn serve(
    registry: Data<Registry>,
    hosts: Data<Hosts>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    if !hosts.admit(request.head()) {
        return Ok(HttpResponse::new(StatusCode::MISDIRECTED_REQUEST));
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| ApiError::Internal(Cause::of(&error)))?;
    Ok(HttpResponse::Ok()
        .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
        .body(text))
}

/// Metrics in no registry.
impl Default for HttpMetrics {
    fn default() -> Self {
        Self::register(&mut Registry::default())
    }
}
