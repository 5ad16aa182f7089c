//! Limits on the requests of an API key and on the failed authentications of a client address (ADR 0028).
//!
//! **Problem.** One client can send more requests than its share, or try tokens until one is valid.
//!
//! **Invariant.** In each interval, over all workers, an API key has at most its burst and its rate times the interval.
//! An address that has failed too often gets 429 before its key is looked up. Entries without a recent request are
//! evicted, and the number of addresses is bounded. A limit that is not configured costs one comparison.
//!
//! **Proof.** The unit tests of each file; `server/tests/api/rate_limits.rs` and `check_order.rs` over sockets.

mod auth_failures;
mod key_rate;
mod recent_failures;

use std::{sync::Weak, time::Duration};

use governor::clock::{Clock, DefaultClock};
use tokio::time::sleep;

pub(crate) use self::{
    auth_failures::AuthFailureLimiter,
    key_rate::{KeyRateLimiter, RATE_LIMIT, RATE_LIMIT_POLICY},
};
use crate::limits::Limits;

const EVICTION_INTERVAL: Duration = Duration::from_mins(1);

/// The limits of an instance. All workers share them.
pub(crate) struct RateLimits<C: Clock = DefaultClock> {
    pub(crate) keys: Option<KeyRateLimiter<C>>,
    pub(crate) auth_failures: Option<AuthFailureLimiter<C>>,
}

impl<C: Clock + Clone> RateLimits<C> {
    pub(crate) fn new(limits: &Limits, clock: &C) -> Self {
        Self {
            keys: limits.rate_limit.map(|limit| KeyRateLimiter::new(limit, clock.clone())),
            auth_failures: limits
                .max_auth_failures_per_minute
                .map(|per_minute| AuthFailureLimiter::new(per_minute, clock.clone())),
        }
    }

    fn evict_idle(&self) {
        self.keys.iter().for_each(KeyRateLimiter::evict_idle);
        self.auth_failures.iter().for_each(AuthFailureLimiter::evict_idle);
    }
}

/// Evicts idle entries once a minute, until the workers have ended.
pub(crate) async fn evict_periodically<C: Clock + Clone>(limits: Weak<RateLimits<C>>) {
    loop {
        sleep(EVICTION_INTERVAL).await;
        let Some(limits) = limits.upgrade() else { return };
        limits.evict_idle();
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, sync::Arc};

    use animal_store_app::ApiKeyId;
    use governor::clock::FakeRelativeClock;

    use super::*;
    use crate::limits::RateLimit;

    #[tokio::test(start_paused = true)]
    async fn idle_entries_are_evicted_every_minute_until_the_workers_have_ended() {
        let (clock, two) = (FakeRelativeClock::default(), NonZeroU32::new(2).expect("not 0"));
        let limits = Arc::new(RateLimits {
            keys: Some(KeyRateLimiter::new(RateLimit { per_second: two, burst: two }, clock.clone())),
            auth_failures: Some(AuthFailureLimiter::new(two, clock.clone())),
        });
        let (Some(keys), Some(failures)) = (&limits.keys, &limits.auth_failures) else { panic!("both are set") };
        let eviction = tokio::spawn(evict_periodically(Arc::downgrade(&limits)));

        keys.take(&ApiKeyId::new("idle"));
        failures.count([192, 0, 2, 1].into());
        clock.advance(EVICTION_INTERVAL);
        keys.take(&ApiKeyId::new("busy"));
        failures.count([192, 0, 2, 2].into());
        assert_eq!((keys.entries(), failures.entries()), (2, 2));
        sleep(EVICTION_INTERVAL + Duration::from_secs(1)).await;
        assert_eq!((keys.entries(), failures.entries()), (1, 1));
        assert_eq!(keys.take(&ApiKeyId::new("busy")), Some(0), "its earlier request counts");
        failures.count([192, 0, 2, 2].into());
        assert!(failures.check([192, 0, 2, 2].into()).is_err(), "both of its failures count");

        drop(limits);
        eviction.await.expect("it ends");
    }
}
