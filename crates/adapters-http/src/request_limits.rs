//! The limits of requests that handlers and middleware of one worker share.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{client_address::TrustedProxies, live::Live, middleware::in_flight::KeyShares};

/// Limits of requests.
pub(crate) struct RequestLimits {
    /// Requests of each API key in flight in this worker.
    pub(crate) key_shares: KeyShares,
    pub(crate) live: Arc<ArcSwap<Live>>,
    pub(crate) proxies: TrustedProxies,
    pub(crate) max_body_bytes: usize,
}
