//! What a server is told by the crate that uses it.

use std::{net::IpAddr, sync::Arc};

use actix_http::StatusCode;

use crate::{
    limits::ConnectionLimits, metrics::ConnectionMetrics, tls::current::CurrentTlsIdentity,
};

/// What a server needs to know about its clients.
#[derive(Clone)]
pub struct ServerSettings {
    /// Limits and timeouts.
    pub limits: ConnectionLimits,
    /// Serves HTTPS with this identity. `None`: serves HTTP.
    pub tls: Option<CurrentTlsIdentity>,
    /// Counts the connections.
    pub metrics: ConnectionMetrics,
    /// Returns the group of a client address, whose connections share turns of handshakes and room. `None`: each
    /// connection is a group of its own, because the address is that of a proxy.
    pub share_of: Arc<dyn Fn(IpAddr) -> Option<IpAddr> + Send + Sync>,
    /// Is called with the address of the client and the status of a head that the application does not receive.
    pub on_refusal: Arc<dyn Fn(Option<IpAddr>, StatusCode) + Send + Sync>,
}

/// Settings of a server without TLS and proxies, whose metrics are in no registry.
impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            limits: ConnectionLimits::default(),
            tls: None,
            metrics: ConnectionMetrics::default(),
            share_of: Arc::new(Some),
            on_refusal: Arc::new(|_, _| ()),
        }
    }
}
