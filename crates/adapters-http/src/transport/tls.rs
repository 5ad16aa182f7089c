//! TLS on the connections of clients.
//!
//! **Problem.** A handshake costs CPU and memory before a client has sent any request, a certificate is replaced while
//! the service runs, and TLS has buffers and a closing message of its own, which a client may neither read nor send.
//!
//! **Invariant.** New connections use the identity that was read last without an error ([`identity`]); open ones go on.
//! A bounded number of handshakes is under way, each with a timeout; one more closes the oldest ([`handshakes`]).
//! HTTP/1.1 is the only protocol. At most [`handshakes::MAX_UNSENT`] bytes wait in a connection for its socket. A
//! connection that ends without a closing message is the end of the input, and closing never waits for a client beyond
//! `http.answer_timeout`.
//!
//! **Proof.** The unit tests beside the files, and `server/tests/process/tls*.rs`: OpenSSL, curl and Python as clients,
//! replaced and broken certificates, and the metrics of handshakes.

pub(crate) mod handshakes;
pub(crate) mod identity;
