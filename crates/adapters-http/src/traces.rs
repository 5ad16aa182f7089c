//! Spans of requests.
//!
//! **Problem.** The log says how long a slow request took, but not where. Spans for all requests are expensive, and
//! clients must neither be able to switch them on nor find their secrets in them.
//!
//! **Invariant.** A request has spans only if it is sampled; the decision is made before the first span. The share of
//! the sampled requests never exceeds the configured one, whatever clients send. A span contains a method, a route, a
//! status code and the request id, and no other value of a client. With traces off, a request costs a branch here, and
//! one load of the maximum log level per span.
//!
//! **Proof.** The unit tests; `server/tests/process/traces.rs` with a receiver of OTLP.

pub(crate) mod spans;
mod traceparent;

use actix_web::{
    dev::{ServiceRequest, ServiceResponse},
    http::{StatusCode, header::HeaderValue},
};
use opentelemetry::trace::{SpanContext, TraceId};
use tracing::Span;

/// Which requests have spans. The default is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceSettings {
    /// Share of the requests that are traced, from 0 to 1. `None` if traces are off.
    pub sample_ratio: Option<f64>,
}

impl TraceSettings {
    /// Returns whether a request is traced. A client that does not trace its request prevents it; no client can
    /// cause it.
    fn samples(self, client_samples: Option<bool>) -> bool {
        client_samples != Some(false) && self.sample_ratio.is_some_and(|ratio| fastrand::f64() < ratio)
    }
}

/// The trace of one request.
pub(crate) struct Trace {
    /// The span of the request, disabled if it has none.
    pub(crate) span: Span,
    /// Id of the trace that the request belongs to: its own, or that of its client.
    pub(crate) id: Option<TraceId>,
}

impl Trace {
    /// Decides whether the request has spans, and begins the first.
    pub(crate) fn start(settings: TraceSettings, request: &ServiceRequest) -> Self {
        if settings.sample_ratio.is_none() {
            return Self { span: Span::none(), id: None };
        }
        let client = traceparent::parse(request.headers());
        if settings.samples(client.as_ref().map(SpanContext::is_sampled)) {
            let span = spans::request(request.method(), client);
            let id = spans::trace_id(&span);
            return Self { span, id };
        }
        let id = client.as_ref().map(SpanContext::trace_id);
        Self { span: Span::none(), id }
    }

    /// Records a response.
    pub(crate) fn end<B>(&self, response: &ServiceResponse<B>, request_id: &HeaderValue) {
        if self.span.is_disabled() {
            return;
        }
        let route = response.request().match_pattern();
        spans::record(&self.span, response.status(), route.as_deref(), request_id);
    }

    /// Records the response to a panic.
    pub(crate) fn end_with_panic(&self, request_id: &HeaderValue) {
        spans::record(&self.span, StatusCode::INTERNAL_SERVER_ERROR, None, request_id);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fmt::Debug,
        sync::{Arc, Mutex},
    };

    use actix_web::http::Method;
    use tracing::{Id, Subscriber, field::Field, span::Record};
    use tracing_subscriber::{Layer, layer, layer::SubscriberExt, registry};

    use super::*;

    /// Keeps the values that spans record.
    #[derive(Clone, Default)]
    struct Recorded(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Recorded {
        fn on_record(&self, _: &Id, values: &Record<'_>, _: layer::Context<'_, S>) {
            let mut recorded = self.0.lock().expect("no panic");
            values.record(&mut |field: &Field, value: &dyn Debug| recorded.push(format!("{field}={value:?}")));
        }
    }

    #[test]
    fn a_panic_is_recorded_as_a_failed_request() {
        let recorded = Recorded::default();
        tracing::subscriber::with_default(registry().with(recorded.clone()), || {
            let trace = Trace { span: spans::request(&Method::GET, None), id: None };
            trace.end_with_panic(&HeaderValue::from_static("r-1"));
        });
        let recorded = recorded.0.lock().expect("no panic");
        assert_eq!(*recorded, ["http.response.status_code=500", "otel.status_code=\"ERROR\"", "request_id=\"r-1\""]);
    }

    fn sampled(ratio: Option<f64>, client: Option<bool>) -> usize {
        let settings = TraceSettings { sample_ratio: ratio };
        (0..1000).filter(|_| settings.samples(client)).count()
    }

    #[test]
    fn the_ratio_bounds_the_share_of_traced_requests_whatever_clients_send() {
        for client in [None, Some(true)] {
            assert_eq!(sampled(None, client), 0);
            assert_eq!(sampled(Some(0.0), client), 0);
            assert!((400..600).contains(&sampled(Some(0.5), client)));
            assert_eq!(sampled(Some(1.0), client), 1000);
        }
    }

    #[test]
    fn a_client_can_prevent_that_its_request_is_traced() {
        assert_eq!(sampled(Some(1.0), Some(false)), 0);
    }
}
