//! What every request passes before and after its handler. `serve.rs` and `routes.rs` say in which order.
//!
//! **Problem.** Every request needs an id, a log line and a response, even if its handler panics, and handlers should
//! not contain that code.
//!
//! **Invariant.** Each request gets one log line and one `X-Request-Id`, whatever happens to it. At most the configured
//! number of requests is in flight; any other gets 503 before anything is done for it. A panic is a 500. Each response
//! of the deprecated operation says that it is deprecated.
//!
//! **Proof.** The unit tests beside each file; `tests/http/request_line.rs` and `failing_ports.rs` for the log line and
//! for panics; `server/tests/api/headers.rs`, `deprecation.rs` and `bounds.rs` over sockets.

pub(crate) mod deprecation;
pub(crate) mod in_flight;
pub(crate) mod panics;
pub(crate) mod request_id;
pub(crate) mod request_log;
