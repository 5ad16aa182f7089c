//! Limits the failed authentications of each client address, so that tokens cannot be tried in large numbers.

use std::{net::IpAddr, num::NonZeroU32};

use governor::{Quota, RateLimiter, clock::Clock, middleware::NoOpMiddleware};

use super::recent_failures::{Check, RecentFailures};
use crate::error::ApiError;

/// Counts failures by IPv4 address and by IPv6 network of 64 bits: a client chooses the other bits of its address. All
/// clients of a proxy that is not trusted count as one address.
pub(crate) struct AuthFailureLimiter<C: Clock>(RateLimiter<Check, RecentFailures, C, NoOpMiddleware<C::Instant>>);

impl<C: Clock> AuthFailureLimiter<C> {
    pub(crate) fn new(per_minute: NonZeroU32, clock: C) -> Self {
        Self(RateLimiter::new(Quota::per_minute(per_minute), RecentFailures::new(), clock))
    }

    /// Rejects a request from an address that has failed too often. Counts nothing.
    pub(crate) fn check(&self, client: IpAddr) -> Result<(), ApiError> {
        self.0.check_key(&Check { network: network(client), counts: false }).map_err(|refusal| {
            let wait = refusal.wait_time_from(self.0.clock().now());
            // In whole seconds, rounded up: a client that waits for this time is admitted.
            ApiError::TooManyAuthFailures(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
        })
    }

    /// Counts a failure. If requests that were in flight together fail, more than the maximum can fail: those beyond it
    /// are not counted.
    pub(crate) fn count(&self, client: IpAddr) {
        let _ = self.0.check_key(&Check { network: network(client), counts: true });
    }

    /// Evicts the networks whose failures no longer count.
    pub(super) fn evict_idle(&self) {
        self.0.retain_recent();
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.0.len()
    }
}

fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use governor::clock::FakeRelativeClock;

    use super::{super::recent_failures::MAX_NETWORKS, *};

    fn limiter(per_minute: u32) -> (AuthFailureLimiter<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (AuthFailureLimiter::new(NonZeroU32::new(per_minute).expect("not 0"), clock.clone()), clock)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Returns the seconds after which a request from this address would be admitted.
    fn wait(limiter: &AuthFailureLimiter<FakeRelativeClock>, client: &str) -> Option<u64> {
        match limiter.check(address(client)) {
            Ok(()) => None,
            Err(ApiError::TooManyAuthFailures(seconds)) => Some(seconds),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn fail(limiter: &AuthFailureLimiter<FakeRelativeClock>, client: &str) {
        limiter.count(address(client));
    }

    #[test]
    fn an_address_is_refused_after_its_failures_until_one_no_longer_counts() {
        let (limiter, clock) = limiter(7);
        let client = "192.0.2.1";

        for _ in 0..7 {
            assert_eq!(wait(&limiter, client), None);
            fail(&limiter, client);
        }
        // A seventh of a minute: 8.57 s.
        assert_eq!(wait(&limiter, client), Some(9));
        clock.advance(Duration::from_millis(7600));
        assert_eq!(wait(&limiter, client), Some(1));
        clock.advance(Duration::from_secs(1));
        assert_eq!(wait(&limiter, client), None);
        fail(&limiter, client);
        assert_eq!(wait(&limiter, client), Some(9));

        clock.advance(Duration::from_mins(1));
        (0..6).for_each(|_| fail(&limiter, client));
        assert_eq!(wait(&limiter, client), None);
    }

    #[test]
    fn a_network_of_64_bits_counts_as_one_ipv6_address() {
        let (limiter, _) = limiter(1);
        fail(&limiter, "2001:db8:0:1::1");
        fail(&limiter, "192.0.2.1");

        for refused in ["2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", "192.0.2.1"] {
            assert_eq!(wait(&limiter, refused), Some(60), "{refused}");
        }
        for other in ["2001:db8::1", "2001:db8:0:2::1", "192.0.2.2", "::1"] {
            assert_eq!(wait(&limiter, other), None, "{other}");
        }
        assert_eq!(limiter.entries(), 2, "a check counts no failure");
    }

    #[test]
    fn the_number_of_addresses_is_bounded_and_a_new_one_is_limited_at_the_maximum() {
        let (limiter, _) = limiter(1);
        let refused = "198.51.100.1";
        fail(&limiter, refused);

        for address in 0..u32::try_from(MAX_NETWORKS).expect("a small number") * 3 {
            let client = IpAddr::V4(Ipv4Addr::from_bits(address));
            assert!(limiter.check(client).is_ok(), "another address refuses {client}");
            limiter.count(client);
            assert!(limiter.check(client).is_err(), "{client} is not limited");
            assert!(limiter.entries() <= MAX_NETWORKS);
            // An address that continues to send requests stays refused.
            assert_eq!(wait(&limiter, refused), Some(60), "after {client}");
        }
    }
}
