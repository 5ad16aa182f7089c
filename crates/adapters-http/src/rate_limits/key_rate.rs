//! Limits the rate of the requests of each API key, and reports the quota that is left
//! (draft-ietf-httpapi-ratelimit-headers-11).

use std::time;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use animal_store_app::ApiKeyId;
use governor::{
    Quota, RateLimiter, clock::Clock, middleware::StateInformationMiddleware, state::keyed::HashMapStateStore,
};
use tokio::time::Instant;

use crate::limits::RateLimit;

pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The clock of tokio, which tests can advance.
#[derive(Debug, Clone)]
struct TokioClock;

impl Clock for TokioClock {
    type Instant = time::Instant;

    fn now(&self) -> Self::Instant {
        Instant::now().into_std()
    }
}

/// The token buckets of the API keys.
pub(crate) struct KeyRateLimiter {
    limiter: RateLimiter<ApiKeyId, HashMapStateStore<ApiKeyId>, TokioClock, StateInformationMiddleware>,
    /// Value of `RateLimit-Policy`.
    policy: HeaderValue,
}

impl KeyRateLimiter {
    pub(crate) fn new(RateLimit { per_second, burst }: RateLimit) -> Self {
        let quota = Quota::per_second(per_second).allow_burst(burst);
        let limiter = RateLimiter::new(quota, HashMapStateStore::default(), TokioClock);
        // A client that sends at most `q` requests in each `w` seconds is never refused.
        let window = burst.get().div_ceil(per_second.get());
        let policy = format!(r#""default";q={burst};w={window}"#);
        Self { limiter, policy: HeaderValue::try_from(policy).expect("ASCII") }
    }

    /// Takes one request from the quota of the key, and returns the number of requests that are left. `None`: no
    /// request was left. One is, at the latest, a second later.
    pub(crate) fn take(&self, key: &ApiKeyId) -> Option<u32> {
        self.limiter.check_key(key).ok().map(|state| state.remaining_burst_capacity())
    }

    /// Adds the fields for clients to a response. A rate of at least one per second means that the quota grows within
    /// a second: `t` is never greater, and equals the `Retry-After` of a 429.
    pub(crate) fn add_fields(&self, headers: &mut HeaderMap, left: Option<u32>) {
        let left = left.unwrap_or(0);
        headers.insert(RATE_LIMIT_POLICY, self.policy.clone());
        headers.insert(RATE_LIMIT, HeaderValue::try_from(format!(r#""default";r={left};t=1"#)).expect("ASCII"));
    }

    /// Evicts the keys that have their whole quota.
    pub(super) fn evict_idle(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.limiter.len()
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, time::Duration};

    use tokio::time::advance;

    use super::*;

    fn limiter(per_second: u32, burst: u32) -> KeyRateLimiter {
        let [per_second, burst] = [per_second, burst].map(|number| NonZeroU32::new(number).expect("not 0"));
        KeyRateLimiter::new(RateLimit { per_second, burst })
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_has_its_burst_and_then_its_rate() {
        let limiter = limiter(2, 3);
        let [key, other] = ["key", "other"].map(ApiKeyId::new);

        let left: Vec<_> = (0..5).map(|_| limiter.take(&key)).collect();
        assert_eq!(left, [Some(2), Some(1), Some(0), None, None]);
        assert_eq!(limiter.take(&other), Some(2));

        advance(Duration::from_millis(499)).await;
        assert_eq!(limiter.take(&key), None);
        advance(Duration::from_millis(1)).await;
        assert_eq!((limiter.take(&key), limiter.take(&key)), (Some(0), None));
        advance(Duration::from_hours(1)).await;
        assert_eq!(limiter.take(&key), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_admitted_again_within_a_second_at_any_rate() {
        for (per_second, burst) in [(1, 1), (1, 1000), (3, 7), (999_999, 1), (1_000_000, 1000)] {
            let limiter = limiter(per_second, burst);
            let key = ApiKeyId::new("key");
            assert_eq!((0..burst).filter_map(|_| limiter.take(&key)).last(), Some(0), "{per_second} {burst}");
            assert_eq!(limiter.take(&key), None, "{per_second} {burst}");
            advance(Duration::from_secs(1)).await;
            assert!(limiter.take(&key).is_some(), "{per_second} {burst}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_the_requests_of_the_policy_in_each_of_its_windows_is_never_refused() {
        for (per_second, burst, window) in [(1, 1, 1), (3, 7, 3), (7, 3, 1), (100, 101, 2), (100, 1000, 10)] {
            let limiter = limiter(per_second, burst);
            let key = ApiKeyId::new("key");
            for _window in 0..10 {
                assert!((0..burst).all(|_| limiter.take(&key).is_some()), "{per_second} {burst}");
                advance(Duration::from_secs(window)).await;
            }

            for (left, r) in [(Some(7), 7), (None, 0)] {
                let mut headers = HeaderMap::new();
                limiter.add_fields(&mut headers, left);
                assert_eq!(headers.get(RATE_LIMIT_POLICY).unwrap(), &format!(r#""default";q={burst};w={window}"#));
                assert_eq!(headers.get(RATE_LIMIT).unwrap(), &format!(r#""default";r={r};t=1"#));
            }
        }
    }
}
