//! The limits of requests that handlers and middleware of one worker share.

use crate::{
    limits::Reloaded,
    middleware::in_flight::KeyShares,
    rate_limits::{AuthFailureLimiter, KeyRateLimiter},
};

/// Limits of requests.
pub(crate) struct RequestLimits {
    /// Each worker has its own. All workers share the others.
    pub(crate) key_shares: KeyShares,
    pub(crate) rate_limit: Reloaded<KeyRateLimiter>,
    pub(crate) auth_failures: Reloaded<AuthFailureLimiter>,
    pub(crate) max_body_bytes: usize,
}
