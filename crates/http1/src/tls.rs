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

mod identity;
#[cfg(test)]
mod tests;
mod turns;

use std::{
    io,
    mem::{Discriminant, discriminant},
    sync::{Arc, atomic::AtomicU64},
};

use prometheus_client::metrics::gauge::Gauge;
use rustls::{CertificateError, Error};
use tokio::sync::watch;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::field::display;

pub use self::identity::{TlsFiles, TlsFilesError, TlsIdentity};
use self::turns::in_turns;
use crate::{connection::State, pool::Slot, socket::Socket, warnings::OncePerMinute};

/// Maximum number of bytes that TLS accepts for a connection and that are not in the socket yet, the same as in the
/// socket. A write into this buffer counts as written.
const MAX_UNSENT: usize = 16 * 1024;

/// The identity that new handshakes use. Clones share it.
#[derive(Debug, Clone)]
pub struct CurrentTlsIdentity {
    identity: watch::Sender<Arc<TlsIdentity>>,
    /// End of the certificate in seconds since 1970.
    pub(crate) expiry: Gauge<u64, AtomicU64>,
    /// Warnings that the certificate of a client was refused.
    refusals: Arc<OncePerMinute<Discriminant<CertificateError>>>,
}

impl CurrentTlsIdentity {
    /// Starts with this identity.
    pub fn new(identity: TlsIdentity) -> Self {
        let expiry = Gauge::default();
        expiry.set(identity.expires.as_secs());
        Self {
            identity: watch::Sender::new(Arc::new(identity)),
            expiry,
            refusals: Arc::default(),
        }
    }

    /// Returns the identity that new handshakes use.
    pub fn get(&self) -> Arc<TlsIdentity> {
        Arc::clone(&self.identity.borrow())
    }

    /// Uses another identity for new handshakes. Returns whether it differs from the current one; otherwise nothing
    /// changes, so that session tickets stay valid.
    pub fn replace(&self, identity: impl Into<Arc<TlsIdentity>>) -> bool {
        let identity = identity.into();
        self.identity.send_if_modified(|current| {
            let differs = *current != identity;
            if differs {
                self.expiry.set(identity.expires.as_secs());
                *current = identity;
            }
            differs
        })
    }
}

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
        let client = slot.peer().map(display);
        let refused = error.get_ref().and_then(|cause| cause.downcast_ref());
        if let Some(Error::InvalidCertificate(reason)) = refused
            && identity.refusals.admits(discriminant(reason))
        {
            tracing::warn!(client, %reason, "the TLS certificate of a client is refused");
        } else {
            tracing::debug!(client, reason = %error, "TLS handshake failed");
        }
    })
}
