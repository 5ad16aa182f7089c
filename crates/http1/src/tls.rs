//! TLS on the connections of clients.
//!
//! **Problem.** A certificate is replaced while the service runs, and TLS has buffers and a closing message of its own,
//! which a client may neither read nor send.
//!
//! **Invariant.** New connections use the identity that was read last without an error ([`identity`]); open ones go on.
//! A handshake has a timeout, takes the slot of a connection, and takes turns with others ([`turns`]). HTTP/1.1 is the only protocol. At most
//! 16 KiB wait in a connection for its socket. A connection that ends without a closing message is the end of the
//! input, and closing waits for a client as long as without TLS.
//!
//! **Proof.** The unit tests beside the files, and `server/tests/process/tls*.rs`: OpenSSL and curl as clients,
//! replaced and broken certificates.

pub(crate) mod current;
pub(crate) mod identity;
#[cfg(test)]
mod tests;
mod turns;

use std::{io, sync::Arc};

use rustls::Error;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::field::display;

use self::{current::CurrentTlsIdentity, turns::in_turns};
use crate::{connection::State, pool::Slot, socket::Socket};

/// Maximum number of bytes that TLS accepts for a connection and that are not in the socket yet, the same as in the
/// socket. A write into this buffer counts as written.
const MAX_UNSENT: usize = 16 * 1024;

/// Negotiates TLS, and returns the stream with it.
///
/// # Errors
/// If the handshake fails or is ended.
pub(crate) async fn accept(
    identity: &CurrentTlsIdentity,
    stream: Socket,
    slot: &Slot,
) -> io::Result<TlsStream<Socket>> {
    slot.enter(State::Handshake);
    let handshake =
        TlsAcceptor::from(Arc::clone(&identity.get().config)).accept_with(stream, |connection| {
            connection.set_buffer_limit(Some(MAX_UNSENT));
        });
    let stream = tokio::select! {
        biased;
        stream = in_turns(slot, handshake) => stream,
        end = slot.ended() => Err(io::Error::other(end)),
    };
    stream.inspect_err(|error| {
        let client = slot.peer().map(|peer| display(peer.ip()));
        let refused = error.get_ref().and_then(|cause| cause.downcast_ref());
        if let Some(Error::InvalidCertificate(reason)) = refused
            && identity.admits_warning(reason)
        {
            tracing::warn!(client, %reason, "the TLS certificate of a client is refused");
        } else {
            tracing::debug!(client, reason = %error, "TLS handshake failed");
        }
    })
}
