//! TLS on the connections of clients.
//!
//! **Problem.** A certificate is replaced while the service runs, and TLS has buffers and a closing message of its own,
//! which a client may neither read nor send.
//!
//! **Invariant.** New connections use the identity that was read last without an error ([`identity`]); open ones go on.
//! A handshake has a timeout and takes the slot of a connection ([`handshake`]). HTTP/1.1 is the only protocol. At most
//! 16 KiB wait in a connection for its socket. A connection that ends without a closing message is the end of the
//! input, and closing waits for a client as long as without TLS.
//!
//! **Proof.** The unit tests beside the files, and `server/tests/process/tls*.rs`: OpenSSL, curl and Python as clients,
//! replaced and broken certificates.

pub(crate) mod handshake;
pub(crate) mod identity;
