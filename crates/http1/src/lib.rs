//! Serves HTTP/1.1 and its TLS to an application of actix, whose server is not used.
//!
//! **Problem.** actix's own server has no timeout for the head of a later request, for a body that no handler reads, or
//! for a client that does not read its response; it reserves memory for connections without a request, and lets the
//! next request of a connection change the response to the one before it.
//!
//! **Invariant.** The codec of actix parses requests and writes responses, one after the other (`exchange`,
//! `wire`). A connection is in one of seven states, each with a timeout (`connection`, `pool`). The
//! application gets a request with its whole body, unless that is too large, too slow or malformed (`bodies`,
//! `framing`): then the connection ends after the response, and a bounded amount of input is dropped. A connection
//! ends only after a response that says so, at a timeout, to make room, or when the server stops. A client that does
//! not read its response holds little memory. If a worker has too many connections, one without a request, or one
//! whose client does not read its response, makes room (`pool`). A shutdown completes every request that has arrived,
//! except one behind a response that says `Connection: close`. `tls` is a wing.
//!
//! **Proof.** The unit tests beside the files. Over sockets, in `crates/server/tests/api`: `raw_http.rs`, `raw_uploads.rs`,
//! `bounds.rs` and `drain.rs`; in `crates/server/tests/process`: `memory.rs`. The fuzz target `request_framing` splits the
//! bytes of requests in all ways; `chunked_framing` compares the check of chunked bodies with the codec.

mod addresses;
mod bodies;
mod connection;
mod exchange;
mod framing;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod heads;
mod limits;
mod listener;
mod metrics;
mod pool;
mod server;
mod settings;
mod socket;
mod tls;
mod warnings;
mod wire;

pub use bodies::{BodyError, ReceivedBody};
pub use limits::ConnectionLimits;
pub use listener::HttpListener;
pub use metrics::ConnectionMetrics;
pub use server::HttpServer;
pub use settings::ServerSettings;
pub use tls::{
    current::CurrentTlsIdentity,
    identity::{TlsFiles, TlsFilesError, TlsIdentity},
};
