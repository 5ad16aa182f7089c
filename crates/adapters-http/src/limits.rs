use std::{num::NonZeroU32, sync::Arc, time::Duration};

use animal_store_http1::ConnectionLimits;
use arc_swap::ArcSwapOption;

use crate::rate_limits::{AuthFailureLimiter, KeyRateLimiter};

/// A setting that can be replaced while requests are served, with its state. Clones share it.
pub type Reloaded<T> = Arc<ArcSwapOption<T>>;

/// Creates a setting. `None`: it is not set.
pub fn reloaded<T>(value: Option<T>) -> Reloaded<T> {
    Arc::new(ArcSwapOption::from_pointee(value))
}

/// Limits of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Limits and timeouts of connections.
    pub connections: ConnectionLimits,
    /// Maximum number of requests in flight. Others are rejected with 503.
    pub max_in_flight: usize,
    /// Maximum number of requests of one API key in flight. Each worker has an equal share, at least 1. Others are
    /// rejected with 503.
    pub max_in_flight_per_key: usize,
    /// Maximum rate of the requests of one API key, over all workers. Others are rejected with 429.
    pub rate_limit: Reloaded<KeyRateLimiter>,
    /// Maximum number of failed authentications of one client address. Further requests are rejected with 429.
    pub auth_failures: Reloaded<AuthFailureLimiter>,
}

/// Maximum rate of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second, after the burst.
    pub per_second: NonZeroU32,
    /// Requests at once, after a pause of `burst / per_second` seconds.
    pub burst: NonZeroU32,
}

const MANAGEMENT_CONNECTIONS: usize = 100;

/// Timeout of the management listener. A probe takes one second at most.
const MANAGEMENT_TIMEOUT: Duration = Duration::from_secs(2);

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: ConnectionLimits::default(),
            max_in_flight: 2000,
            max_in_flight_per_key: 1000,
            rate_limit: Reloaded::default(),
            auth_failures: Reloaded::default(),
        }
    }
}

/// Returns the limits of the management listener.
pub fn management_limits() -> ConnectionLimits {
    ConnectionLimits {
        max_connections: MANAGEMENT_CONNECTIONS,
        head_timeout: MANAGEMENT_TIMEOUT,
        body_timeout: MANAGEMENT_TIMEOUT,
        keep_alive: MANAGEMENT_TIMEOUT,
        // Longer than the others together.
        answer_timeout: 4 * MANAGEMENT_TIMEOUT,
        ..ConnectionLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_management_listener_has_one_worker_and_timeouts_of_seconds() {
        let limits = management_limits();
        assert_eq!([limits.running_workers(), limits.sockets()], [1, 165]);
        let timeouts = [
            limits.head_timeout,
            limits.body_timeout,
            limits.keep_alive,
            limits.answer_timeout,
        ];
        assert_eq!(timeouts.map(|timeout| timeout.as_secs()), [2, 2, 2, 8]);
    }
}
