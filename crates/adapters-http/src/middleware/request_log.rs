//! For each response: its line in the log, unless `log.requests` leaves it out, its counts, and the headers that every
//! response has.
//!
//! The line never contains a query or a body, and of the headers only the request id, the trace id, the user agent and
//! the address of the client behind trusted proxies. Of an idempotency key it contains the digest. A 5xx is logged as
//! an error with its cause, which the client never sees.

use std::{
    error::Error as _,
    net::IpAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{
    Error, HttpMessage,
    body::{BodySize, MessageBody},
    dev::{Service, ServiceRequest, ServiceResponse},
    http::{
        Method, StatusCode,
        header::{HeaderMap, HeaderValue, USER_AGENT, X_CONTENT_TYPE_OPTIONS},
    },
};
use animal_store_app::is_deceptive;
use arc_swap::ArcSwap;
use futures_util::TryFutureExt;
use opentelemetry::trace::TraceId;
use tracing::{Instrument, Level};

use super::request_id::{self, X_REQUEST_ID};
use crate::{
    client_address::TrustedProxies,
    error::{ApiError, ExceededLimit},
    live::Live,
    metrics::HttpMetrics,
    request_record::RequestRecord,
    traces::Trace,
};

const MAX_TEXT_BYTES: usize = 256;
const MAX_USER_AGENT_BYTES: usize = 128;

/// Emits an event at a level that is a value: ERROR, DEBUG, or otherwise INFO.
macro_rules! at_level {
    ($level:expr, tracing::event!($($fields:tt)+)) => {
        match $level {
            Level::ERROR => tracing::event!(Level::ERROR, $($fields)+),
            Level::DEBUG => tracing::event!(Level::DEBUG, $($fields)+),
            _ => tracing::event!(Level::INFO, $($fields)+),
        }
    };
}

/// Records the requests of a server.
#[derive(Clone)]
pub(crate) struct RequestLog {
    /// Level of the lines about requests that did not fail in the server: INFO or DEBUG.
    pub(crate) level: Level,
    pub(crate) proxies: TrustedProxies,
    pub(crate) live: Arc<ArcSwap<Live>>,
    pub(crate) metrics: Arc<HttpMetrics>,
}

impl RequestLog {
    /// Logs and counts a request that was refused before the application received it.
    pub(crate) fn record_refusal(&self, client: Option<IpAddr>, status: StatusCode) {
        self.metrics.count_refusal(status);
        let status = status.as_u16();
        at_level!(
            self.level,
            tracing::event!(status, client = client.map(display), "request refused")
        );
    }

    fn has_line(&self, status: StatusCode) -> bool {
        status.as_u16() >= 400 || !self.live.load().errors_only
    }
}

/// Logs, counts and traces a request.
pub(crate) fn record<S, B>(
    log: &Rc<RequestLog>,
    sample_ratio: Option<f64>,
    request: ServiceRequest,
    service: &S,
) -> impl Future<Output = Result<ServiceResponse<B>, Error>> + use<S, B>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let start = Instant::now();
    let log = Rc::clone(log);
    let id = request_id::get_or_create(request.headers());
    let client = log.proxies.client_of(&request);
    let trace = Trace::start(sample_ratio, &request);
    let call = service.call(request).instrument(trace.span.clone());
    call.map_ok(move |mut response| {
        let level = if response.status().is_server_error() {
            Level::ERROR
        } else {
            log.level
        };
        let duration = start.elapsed();
        if log.has_line(response.status()) {
            write_line(&response, &id, trace.id, client, duration, level);
        }
        log.metrics.count_response(&response, duration);
        trace.end(&response, &id);
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, id);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    })
}

fn write_line<B: MessageBody>(
    response: &ServiceResponse<B>,
    id: &HeaderValue,
    trace_id: Option<TraceId>,
    client: Option<IpAddr>,
    duration: Duration,
    level: Level,
) {
    let request = response.request();
    let extensions = request.extensions();
    // Nothing is recorded of a request without a valid key.
    let empty = RequestRecord::default();
    let record = extensions.get().unwrap_or(&empty);
    let key = record.api_key.as_ref();
    let error = ApiError::of(response.response());
    let bytes = match response.response().body().size() {
        BodySize::Sized(bytes) if request.method() != Method::HEAD => bytes,
        _ => 0,
    };
    at_level!(
        level,
        tracing::event!(
            method = shortened(request.method().as_str()),
            path = shortened(request.path()),
            status = response.status().as_u16(),
            code = error.map(|error| error.response().code),
            bytes,
            microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            deprecated = record.deprecated.then_some(true),
            client = client.map(display),
            user_agent = user_agent(request.headers()),
            api_key = key.map(|key| key.id.as_str()),
            api_key_label = key.map(|key| key.label.as_str()),
            idempotency_key = record
                .idempotency_key
                .as_ref()
                .map(|key| hex::encode(key.digest)),
            replayed = record.replayed.then_some(true),
            request_id = id.to_str().unwrap_or_default(),
            shed = error
                .and_then(ApiError::exceeded_limit)
                .map(ExceededLimit::as_str),
            trace_id = trace_id.map(display),
            cause = error.and_then(|error| error.source()).map(display),
            "request"
        )
    );
}

/// Limits the length of a text that comes from the client.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

/// Returns the start of the header up to its maximum length, or up to the first character that
/// [`is_deceptive`].
fn user_agent(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(USER_AGENT)?.as_bytes();
    let length = value.len().min(MAX_USER_AGENT_BYTES);
    let start = value[..length].utf8_chunks().next()?;
    start.valid().split(is_deceptive).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_ends_before_the_first_deceptive_character_and_after_128_bytes() {
        let long = "x".repeat(200);
        let cut = format!("{}ü", &long[..127]);
        for (sent, logged) in [
            ("shop/1", "shop/1"),
            ("Bücher/1", "Bücher/1"),
            ("curl \"quoted\" \u{1f600}", "curl \"quoted\" \u{1f600}"),
            ("shop\t/1", "shop"),
            (&long, &long[..128]),
            (&cut, &long[..127]),
            ("shop\u{61c}/1", "shop"),
            ("shop\u{202e}/1", "shop"),
            ("shop\u{2029}/1", "shop"),
            ("shop\u{200b}/1", "shop"),
            ("shop\u{feff}/1", "shop"),
            ("shop\u{85}/1", "shop"),
        ] {
            let value = HeaderValue::from_bytes(sent.as_bytes()).unwrap();
            let headers = HeaderMap::from_iter([(USER_AGENT, value)]);
            assert_eq!(user_agent(&headers), Some(logged), "{sent:?}");
        }
    }

    #[test]
    fn an_error_always_has_a_line_and_a_success_unless_only_errors_are_logged() {
        let log = RequestLog {
            level: Level::INFO,
            proxies: TrustedProxies::default(),
            live: Arc::default(),
            metrics: Arc::default(),
        };
        let is_logged = |status| log.has_line(StatusCode::from_u16(status).unwrap());
        let statuses = [101, 200, 308, 400, 404, 503];
        assert_eq!(statuses.map(is_logged), [true; 6]);
        log.live.store(Arc::new(Live {
            errors_only: true,
            ..Live::default()
        }));
        assert_eq!(
            statuses.map(is_logged),
            [false, false, false, true, true, true]
        );
    }
}
