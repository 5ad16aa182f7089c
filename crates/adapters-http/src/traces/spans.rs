//! The spans of this crate. All have the level TRACE and the target `trace`, so that a span that nothing wants costs
//! one load, and so that no filter of the log prints them.

use actix_web::http::{Method, StatusCode, header::HeaderValue};
use opentelemetry::{
    Context,
    trace::{SpanContext, TraceContextExt, TraceId},
};
use tracing::{Span, field::Empty, level_filters::LevelFilter, trace_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The span of a sampled request. Its attributes follow the semantic conventions of OpenTelemetry for HTTP servers.
pub(super) fn request(method: &Method, client: Option<SpanContext>) -> Span {
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
    if let Some(client) = client {
        // Fails only without a layer for traces.
        let _ = span.set_parent(Context::new().with_remote_span_context(client));
    }
    span
}

/// The span of the check of an API key.
pub(crate) fn authentication() -> Span {
    in_request(|| trace_span!(target: "trace", "authentication"))
}

/// The span of a use case: nearly all of its time is spent in the storage.
pub(crate) fn storage() -> Span {
    in_request(|| trace_span!(target: "trace", "storage"))
}

/// Creates a span if the current request has one. The registry stores a span even if all filters refuse it, which costs
/// more than this check.
fn in_request(span: impl FnOnce() -> Span) -> Span {
    let wanted = LevelFilter::current() == LevelFilter::TRACE && !Span::current().is_disabled();
    if wanted { span() } else { Span::none() }
}

/// Returns the id of the trace of a span. `None` without a layer for traces.
pub(super) fn trace_id(span: &Span) -> Option<TraceId> {
    let id = span.context().span().span_context().trace_id();
    (id != TraceId::INVALID).then_some(id)
}

pub(super) fn record(span: &Span, status: StatusCode, route: Option<&str>, request_id: &HeaderValue) {
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    if let Some(route) = route {
        span.record("http.route", route);
    }
    span.record("request_id", request_id.to_str().unwrap_or_default());
}

/// Returns the method, or the value of the semantic conventions for a method that a client made up.
fn known(method: &Method) -> &str {
    match *method {
        Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::PATCH | Method::DELETE | Method::OPTIONS => {
            method.as_str()
        }
        _ => "_OTHER",
    }
}
