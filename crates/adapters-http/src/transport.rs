//! What happens to a connection before actix reads from it and after actix writes to it.
//!
//! **Problem.** actix has no timeout for the head of a later request, for a body that no handler reads, or for a client
//! that does not read its response, and it copies a whole body to the memory of its connection. It also parses the next
//! request while the last one waits for its response, and lets that request change the response.
//!
//! **Invariant.** A connection is closed when nothing was written to it for the write timeout, `http.answer_timeout`
//! ([`write_timeout`]). actix receives the bytes of one request, and the next request only after the response
//! ([`connection`], [`request_stream`]); [`framing`] finds where a request ends, exactly where actix does. A response
//! that comes before the end of its request's body does not cost the connection if the body is small; otherwise the
//! sending side is closed at once, and a bounded amount of input is drained ([`responding`]). A client that does not
//! read its response holds little memory ([`sliced_body`]). If the connections of a worker are too many or hold too
//! much, the oldest of them is closed ([`connections`]). A shutdown loses no request ([`listener`]). [`tls`] is a wing.
//!
//! **Proof.** The unit tests beside the files; `framing/tests.rs` compares the ends with those of actix, case by case.
//! Over sockets, in `server/tests/api`: `raw_http.rs`, `raw_requests.rs`, `raw_uploads.rs`, `slow_clients.rs`,
//! `bounds.rs` and `drain.rs`; in `server/tests/process`: `slow_readers.rs`.

pub(crate) mod acceptor;
pub(crate) mod client_stream;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod counted_stream;
mod drain;
mod framing;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
pub(crate) mod listener;
mod phase;
pub(crate) mod request_stream;
pub(crate) mod responding;
mod response_progress;
pub(crate) mod sliced_body;
pub(crate) mod tls;
pub(crate) mod write_timeout;
