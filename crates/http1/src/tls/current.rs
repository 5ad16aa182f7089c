//! The identity in use. It is replaced while the server runs.

use std::{
    mem::{Discriminant, discriminant},
    sync::{Arc, atomic::AtomicU64},
};

use prometheus_client::metrics::gauge::Gauge;
use rustls::CertificateError;
use tokio::sync::watch;

use super::identity::TlsIdentity;
use crate::warnings::OncePerMinute;

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

    /// Returns whether to warn now that the certificate of a client was refused for this reason.
    pub(super) fn admits_warning(&self, reason: &CertificateError) -> bool {
        self.refusals.admits(discriminant(reason))
    }
}
