//! The handshake of a connection. It has a timeout, and takes the slot of a connection.

#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr};

use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::identity::CurrentTlsIdentity;
use crate::transport::{
    connection::{End, State},
    connections::Slot,
};

/// Maximum number of bytes that TLS accepts for a connection and that are not in the socket yet, the same as in the
/// socket. A write into this buffer counts as written.
const MAX_UNSENT: usize = 16 * 1024;

/// Returns the stream with TLS.
///
/// # Errors
/// If the handshake fails or is ended.
pub(crate) async fn accept(
    identity: &CurrentTlsIdentity,
    stream: TcpStream,
    peer: Option<SocketAddr>,
    slot: &Slot,
) -> io::Result<TlsStream<TcpStream>> {
    slot.enter(State::Handshake);
    let handshake = TlsAcceptor::from(identity.config())
        .accept_with(stream, |connection| connection.set_buffer_limit(Some(MAX_UNSENT)));
    let closed = |reason: &str| Err(io::Error::other(reason));
    let stream = tokio::select! {
        biased;
        stream = handshake => stream,
        end = slot.connection.ended() => match end {
            End::Timeout => closed("timeout"),
            End::Stop => closed("the server stops"),
            End::Limit(_) | End::Client => closed("closed to make room for others"),
        },
    };
    stream.inspect_err(|error| {
        tracing::debug!(client = peer.as_ref().map(tracing::field::display), reason = %error, "TLS handshake failed");
    })
}
