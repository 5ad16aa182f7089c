//! Middleware around every handler. `serve.rs` and `routes.rs` define its order.
//!
//! **Problem.** Every request needs an id, a log line and a response, even if its handler panics, and handlers should
//! not contain that code.
//!
//! **Invariant.** Each request that gets a response has one log line, unless `log.requests` leaves it out, and one
//! `X-Request-Id`, on success and on failure. If the connection ends before, there is no line, and a create may be
//! stored. At most the configured number of requests is in flight, and at most the configured number of one API key;
//! further requests get 503. A request is in flight once its body is here. A panic is a 500. Each response of the
//! deprecated operation announces the deprecation.
//!
//! **Proof.** The unit tests beside each file; `tests/http/request_line.rs` and `failing_ports.rs` for the log line and
//! for panics, `overload.rs` for the limit; `server/tests/api/headers.rs`, `deprecation.rs` and `bounds.rs` over
//! sockets.

pub(crate) mod authenticate;
pub(crate) mod cors;
pub(crate) mod in_flight;
pub(crate) mod request_id;
pub(crate) mod request_log;

use std::{panic::AssertUnwindSafe, thread};

use actix_web::Handler;
use futures_util::{
    FutureExt,
    future::{CatchUnwind, Map},
};

use crate::error::ApiError;

/// A handler whose panic is a 500. Without this, the connection is closed without a response.
#[derive(Clone)]
pub(crate) struct Caught<H>(pub(crate) H);

impl<Args, H: Handler<Args>> Handler<Args> for Caught<H> {
    type Output = Result<H::Output, ApiError>;
    type Future = Map<
        CatchUnwind<AssertUnwindSafe<H::Future>>,
        fn(thread::Result<H::Output>) -> Self::Output,
    >;

    fn call(&self, args: Args) -> Self::Future {
        // The state of the request is dropped with it. Shared state is valid after a panic.
        AssertUnwindSafe(self.0.call(args))
            .catch_unwind()
            .map(caught)
    }
}

/// Turns a panic into an error.
pub(crate) fn caught<T>(result: thread::Result<T>) -> Result<T, ApiError> {
    result.map_err(|_| ApiError::Internal("a panic, logged by the panic hook".into()))
}
