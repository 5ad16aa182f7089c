//! Metrics of the API listener, and `/metrics` on the management listener.
//!
//! **Problem.** An operator needs to see load, errors and latency, and counting must not slow down the requests that it
//! describes.
//!
//! **Invariant.** Each series has a handle that is made once: a request costs a few additions, and no lookup by labels.
//! No label has a value that a client chose ([`labels`]), so the number of series is bounded.
//! [`docs/metrics.md`](../../../../docs/metrics.md) lists every metric.
//!
//! **Proof.** The unit tests of [`labels`]; `server/tests/api/metrics.rs` reads the counts of requests and connections;
//! `server/tests/process/metrics_documentation.rs` compares the response with the document.

mod hosts;
mod labels;

use std::{iter, ops::Range, sync::OnceLock, time::Duration};

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web::Data};
use animal_store_app::ports::Cause;
use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Metric, Registry},
};

pub(crate) use self::hosts::Hosts;
use self::labels::MethodLabel;
pub(crate) use self::labels::{Operation, RequestLabels, Shed};
use crate::{error::ApiError, pets::DEPRECATION};

/// Bounds of the buckets for the durations of requests, in seconds.
const DURATION_BUCKETS: [f64; 14] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];

/// Statuses of responses.
const STATUSES: Range<u16> = 200..600;

/// Names of labels, with their values.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Operation, method and status.
type ResponseLabels = (Labels<2>, [(&'static str, u16); 1]);

/// Handles of the metrics of the API listener. All workers share them.
#[derive(Debug)]
pub(crate) struct HttpMetrics {
    responses: Family<ResponseLabels, Counter>,
    /// The handles of `responses`. Each is made by its first response.
    response_handles: Vec<OnceLock<Counter>>,
    durations: [Histogram; Operation::ALL.len()],
    shed: [Counter; Shed::ALL.len()],
    deprecated: Counter,
}

impl HttpMetrics {
    /// Registers the metrics. The names and texts are those of `docs/metrics.md`.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let durations =
            Family::<Labels<1>, _, _>::new_with_constructor(|| Histogram::new(DURATION_BUCKETS));
        let help = "Time from the head of a request to its response";
        let durations = registered(registry, "request_duration_seconds", help, durations);
        let help = "Requests refused because of a limit: in_flight, key_share, rate_limit, auth_failures, \
            storage_queue or key_lookups";
        let shed = counters(
            registry,
            "requests_shed",
            help,
            "reason",
            Shed::ALL.map(Shed::as_str),
        );
        let help = "Authenticated requests for a deprecated operation";
        let operations = [Operation::GetPet.as_str()];
        let [deprecated] = counters(
            registry,
            "deprecated_requests",
            help,
            "operation",
            operations,
        );
        let handles = Operation::ALL.len() * MethodLabel::ALL.len() * STATUSES.len();
        let metrics = Self {
            responses: registered(
                registry,
                "requests",
                "Responses sent by the API listener",
                Family::default(),
            ),
            response_handles: iter::repeat_with(OnceLock::new).take(handles).collect(),
            durations: Operation::ALL
                .map(|name| durations.get_or_create_owned(&[("operation", name.as_str())])),
            shed,
            deprecated,
        };
        // A counter that appears with its first response has no increase that an alert could see.
        for (operation, method, success) in [
            (Operation::ListPets, MethodLabel::Get, 200),
            (Operation::CreatePet, MethodLabel::Post, 201),
            (Operation::GetPet, MethodLabel::Get, 200),
        ] {
            for status in [success, 500, 503] {
                metrics.response(RequestLabels { operation, method }, status);
            }
        }
        metrics
    }

    /// Counts a response of the application.
    pub(crate) fn count_response<B>(
        &self,
        labels: RequestLabels,
        response: &HttpResponse<B>,
        duration: Duration,
    ) {
        self.count_status(labels, response.status());
        self.durations[labels.operation as usize].observe(duration.as_secs_f64());
        if labels.operation == Operation::GetPet && response.headers().contains_key(DEPRECATION) {
            self.deprecated.inc();
        }
        let error = response
            .error()
            .and_then(|error| error.as_error::<ApiError>());
        if let Some(shed) = error.and_then(ApiError::shed) {
            self.shed[shed as usize].inc();
        }
    }

    /// Counts a response to a request that may have no duration.
    pub(crate) fn count_status(&self, labels: RequestLabels, status: StatusCode) {
        if STATUSES.contains(&status.as_u16()) {
            self.response(labels, status.as_u16()).inc();
        }
    }

    fn response(
        &self,
        RequestLabels { operation, method }: RequestLabels,
        status: u16,
    ) -> &Counter {
        let row = operation as usize * MethodLabel::ALL.len() + method as usize;
        self.response_handles[row * STATUSES.len() + usize::from(status - STATUSES.start)]
            .get_or_init(|| {
                let texts = [
                    ("operation", operation.as_str()),
                    ("method", method.as_str()),
                ];
                self.responses
                    .get_or_create_owned(&(texts, [("status", status)]))
            })
    }
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

/// Registers a metric and returns its handle.
fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a counter for each value of a label, and returns them in this order.
fn counters<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    values: [&'static str; N],
) -> [Counter; N] {
    let family: Family<Labels<1>, Counter> = registered(registry, name, help, Family::default());
    values.map(|value| family.get_or_create_owned(&[(label, value)]))
}
