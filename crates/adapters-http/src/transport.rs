//! Streams between the sockets and actix.
//!
//! **Problem.** actix has no timeout for the head of a later request, for a body that no handler reads, or for a client
//! that does not read its response. It also parses the next request while the last one waits for its response, and lets
//! that request change the response.
//!
//! **Invariant.** A connection is closed when nothing was written to it for the response timeout ([`write_timeout`]).
//! actix receives the bytes of one request, and the next request only after the response ([`pipelining`]). [`framing`]
//! finds the end of a request at the same byte as actix.
//!
//! **Proof.** The unit tests beside each file; `framing/tests.rs` compares the ends with those of actix, case by case.
//! Over sockets: `server/tests/api/raw_http.rs`, `raw_requests.rs`, `raw_uploads.rs` and `slow_clients.rs`.

mod framing;
pub(crate) mod pipelining;
pub(crate) mod write_timeout;
