//! Limits on the requests of an API key and on the failed authentications of a client address (ADR 0028).
//!
//! **Problem.** One client can send more requests than its share, or try tokens until one is valid.
//!
//! **Invariant.** In each interval, over all workers, an API key has at most its burst and its rate times the interval.
//! An address that has failed too often gets 429 before its key is looked up. API keys without a recent request are
//! evicted, and the number of addresses is bounded. A limit that is not configured costs one comparison.
//!
//! **Proof.** The unit tests of each file; `server/tests/api/rate_limits.rs` and `check_order.rs` over sockets.

mod auth_failures;
mod key_rate;

use std::{sync::Weak, time::Duration};

use tokio::time::sleep;

pub(crate) use self::{
    auth_failures::AuthFailureLimiter,
    key_rate::{KeyRateLimiter, RATE_LIMIT, RATE_LIMIT_POLICY},
};
use crate::limits::Limits;

const EVICTION_INTERVAL: Duration = Duration::from_mins(1);

/// The limits of an instance. All workers share them.
pub(crate) struct RateLimits {
    pub(crate) keys: Option<KeyRateLimiter>,
    pub(crate) auth_failures: Option<AuthFailureLimiter>,
}

impl RateLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            keys: limits.rate_limit.map(KeyRateLimiter::new),
            auth_failures: limits.max_auth_failures_per_minute.map(AuthFailureLimiter::new),
        }
    }
}

/// Evicts idle API keys once a minute, until the workers have ended.
pub(crate) async fn evict_periodically(limits: Weak<RateLimits>) {
    loop {
        sleep(EVICTION_INTERVAL).await;
        let Some(limits) = limits.upgrade() else { return };
        limits.keys.iter().for_each(KeyRateLimiter::evict_idle);
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, sync::Arc};

    use animal_store_app::ApiKeyId;

    use super::*;
    use crate::limits::RateLimit;

    #[tokio::test(start_paused = true)]
    async fn idle_keys_are_evicted_every_minute_until_the_workers_have_ended() {
        let two = NonZeroU32::new(2).expect("not 0");
        let keys = Some(KeyRateLimiter::new(RateLimit { per_second: two, burst: two }));
        let limits = Arc::new(RateLimits { keys, auth_failures: None });
        let keys = limits.keys.as_ref().expect("it is set");
        let eviction = tokio::spawn(evict_periodically(Arc::downgrade(&limits)));

        keys.take(&ApiKeyId::new("idle"));
        sleep(Duration::from_millis(59_900)).await;
        keys.take(&ApiKeyId::new("busy"));
        assert_eq!(keys.entries(), 2);
        sleep(Duration::from_millis(200)).await;
        assert_eq!(keys.entries(), 1);
        assert_eq!(keys.take(&ApiKeyId::new("busy")), Some(0), "its earlier request counts");

        drop(limits);
        eviction.await.expect("it ends");
    }
}
