//! Spans of requests.
//!
//! **Problem.** The log says how long a slow request took, but not where. Spans for all requests are expensive, and
//! clients must neither be able to switch them on nor find their secrets in them.
//!
//! **Invariant.** A request has spans only if it is sampled; the decision is made before the first span. The share of
//! the sampled requests never exceeds the configured one, whatever clients send. A span contains a method, a route, a
//! status code and the request id, and no other value of a client. With traces off, a request costs a branch here, and
//! one load of the maximum log level per span. All spans have the level TRACE and the target `trace`, so that no filter
//! of the log prints them.
//!
//! **Proof.** The unit tests; `server/tests/process/traces.rs` with a receiver of OTLP.

use std::collections::HashMap;

use actix_web::{
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{HeaderMap, HeaderValue},
    },
};
use opentelemetry::{
    Context,
    propagation::TextMapPropagator,
    trace::{TraceContextExt, TraceId},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Span, field::Empty, level_filters::LevelFilter, trace_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACEPARENT: &str = "traceparent";

/// The trace of one request.
pub(crate) struct Trace {
    /// The span of the request, disabled if it has none.
    pub(crate) span: Span,
    /// Id of the trace that the request belongs to: its own, or that of its client.
    pub(crate) id: Option<TraceId>,
}

impl Trace {
    /// Decides whether the request has spans, and begins the first. `sample_ratio`: see
    /// [`ApiSettings`](crate::ApiSettings).
    pub(crate) fn start(sample_ratio: Option<f64>, request: &ServiceRequest) -> Self {
        let Some(sample_ratio) = sample_ratio else {
            return Self {
                span: Span::none(),
                id: None,
            };
        };
        let client = client_context(request.headers());
        let client_samples = client
            .has_active_span()
            .then(|| client.span().span_context().is_sampled());
        if !samples(sample_ratio, client_samples) {
            return Self {
                span: Span::none(),
                id: trace_id(&client),
            };
        }
        let span = request_span(request.method(), client);
        Self {
            id: trace_id(&span.context()),
            span,
        }
    }

    /// Records the response.
    pub(crate) fn end<B>(&self, response: &ServiceResponse<B>, request_id: &HeaderValue) {
        let Self { span, .. } = self;
        if span.is_disabled() {
            return;
        }
        let status = response.status();
        span.record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
        // The router has decoded this path. A request that is refused before its route has a pattern, too.
        let request = response.request();
        let path = request.match_info().as_str();
        if let Some(route) = request.resource_map().match_pattern(path) {
            span.record("http.route", route);
        }
        span.record("request_id", request_id.to_str().unwrap_or_default());
    }
}

/// Returns whether a request is traced. A client that does not trace its request prevents it; no client can cause it.
fn samples(ratio: f64, client_samples: Option<bool>) -> bool {
    client_samples != Some(false) && fastrand::f64() < ratio
}

/// The context of the client: its span, if the header `traceparent` (W3C Trace Context) names one and is not given
/// twice. `tracestate` is ignored: it is free text of a client.
fn client_context(headers: &HeaderMap) -> Context {
    let mut fields = HashMap::new();
    let mut values = headers.get_all(TRACEPARENT);
    if let Some(value) = values.next()
        && values.next().is_none()
        && let Ok(text) = value.to_str()
        && has_fields_of_traceparent(text)
    {
        fields.insert(TRACEPARENT.to_owned(), text.to_owned());
    }
    TraceContextPropagator::new().extract_with_context(&Context::new(), &fields)
}

/// Returns whether a header begins with a version, two ids and flags. The propagator also reads numbers that are shorter
/// or have a sign.
fn has_fields_of_traceparent(text: &str) -> bool {
    let mut fields = text.split('-');
    [2, 32, 16, 2].into_iter().all(|length| {
        fields.next().is_some_and(|field| {
            field.len() == length && field.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    })
}

/// Returns the id of the trace of a context. `None` without a span, or without a layer for traces.
fn trace_id(context: &Context) -> Option<TraceId> {
    let id = context.span().span_context().trace_id();
    (id != TraceId::INVALID).then_some(id)
}

/// The span of a sampled request. Its attributes follow the semantic conventions of OpenTelemetry for HTTP servers.
fn request_span(method: &Method, client: Context) -> Span {
    let span = trace_span!(
        target: "trace",
        "request",
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = known(method),
        http.response.status_code = Empty,
        http.route = Empty,
        request_id = Empty,
    );
    // Fails only without a layer for traces.
    let _ = span.set_parent(client);
    span
}

/// The span of the check of an API key.
pub(crate) fn authentication_span() -> Span {
    in_request(|| trace_span!(target: "trace", "authentication"))
}

/// The span of a use case: nearly all of its time is spent in the storage.
pub(crate) fn storage_span() -> Span {
    in_request(|| trace_span!(target: "trace", "storage"))
}

/// Creates a span if the current request has one. The registry stores a span even if all filters refuse it, which costs
/// more than this check.
fn in_request(span: impl FnOnce() -> Span) -> Span {
    let wanted = LevelFilter::current() == LevelFilter::TRACE && !Span::current().is_disabled();
    if wanted { span() } else { Span::none() }
}

/// Returns the method, or the value of the semantic conventions for a method that a client made up.
fn known(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "_OTHER",
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderName;

    use super::*;

    fn sampled(ratio: f64, client: Option<bool>) -> usize {
        (0..1000).filter(|_| samples(ratio, client)).count()
    }

    #[test]
    fn the_ratio_bounds_the_share_of_traced_requests_whatever_clients_send() {
        for client in [None, Some(true)] {
            assert_eq!(sampled(0.0, client), 0);
            assert!((400..600).contains(&sampled(0.5, client)));
            assert_eq!(sampled(1.0, client), 1000);
        }
        assert_eq!(
            sampled(1.0, Some(false)),
            0,
            "the client does not trace its request"
        );
    }

    #[test]
    fn the_client_is_the_one_that_traceparent_names_and_nothing_else_of_its_headers_is_read() {
        let client = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.append(
                HeaderName::from_static("tracestate"),
                HeaderValue::from_static("vendor=secret"),
            );
            for value in values {
                headers.append(
                    HeaderName::from_static("traceparent"),
                    HeaderValue::from_static(value),
                );
            }
            let context = client_context(&headers);
            let span = context.span().span_context().clone();
            assert_eq!(span.trace_state().header(), "");
            trace_id(&context).map(|trace| (trace.to_string(), span.is_sampled()))
        };
        let sampled = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        let unsampled = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00";

        let trace = "0af7651916cd43dd8448eb211c80319c".to_owned();
        assert_eq!(client(&[sampled]), Some((trace.clone(), true)));
        assert_eq!(client(&[unsampled]), Some((trace, false)));
        let signed = "00-+af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        for values in [
            &[][..],
            &[sampled, sampled],
            &["x"],
            &[&sampled[..52]],
            &[signed],
        ] {
            assert_eq!(client(values), None, "{values:?}");
        }
    }
}
