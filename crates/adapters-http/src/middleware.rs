//! Middleware around every handler. `serve.rs` and `routes.rs` define its order.
//!
//! **Problem.** Every request needs an id, a log line and a response, even if its handler panics, and handlers should
//! not contain that code.
//!
//! **Invariant.** Each request gets one log line, unless `log.requests` leaves it out, and one `X-Request-Id`, on
//! success and on failure. At most the configured number of requests is in flight, and at most the configured number of
//! one API key; further requests get 503. A request that waits for its body takes no permit from another API key. A
//! panic is a 500. Each response of the deprecated operation announces the deprecation.
//!
//! **Proof.** The unit tests beside each file; `tests/http/request_line.rs` and `failing_ports.rs` for the log line and
//! for panics, `overload.rs` for the limit; `server/tests/api/headers.rs`, `deprecation.rs` and `bounds.rs` over
//! sockets.

pub(crate) mod in_flight;
pub(crate) mod key_shares;
pub(crate) mod logged_requests;
pub(crate) mod request_id;
pub(crate) mod request_log;
pub(crate) mod trusted_proxies;

use std::panic::AssertUnwindSafe;

use actix_web::{
    Error,
    dev::{Service, ServiceRequest, ServiceResponse},
};
use futures_util::FutureExt;

use crate::error::ApiError;

/// Turns a panic into a 500. Without this, actix closes the connection without a response.
pub(crate) fn catch_panics<S>(
    request: ServiceRequest,
    service: &S,
) -> impl Future<Output = Result<ServiceResponse, Error>> + use<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse, Error = Error>,
{
    // The state of the request is dropped with it. Shared state is valid after a panic.
    AssertUnwindSafe(service.call(request)).catch_unwind().map(|result| {
        result.unwrap_or_else(|_| Err(ApiError::Internal("a panic, logged by the panic hook".into()).into()))
    })
}
