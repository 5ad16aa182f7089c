//! Limits the failed authentications of each client address, so that tokens cannot be tried in large numbers.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use quick_cache::unsync::Cache;
use tokio::time::Instant;

use crate::error::ApiError;

/// Maximum number of networks. They take about 1 MB.
const MAX_NETWORKS: usize = 10_000;

const MINUTE: Duration = Duration::from_mins(1);

/// Counts failures by IPv4 address and by IPv6 network of 64 bits: a client chooses the other bits of its address. All
/// clients of a proxy that is not trusted count as one address.
///
/// governor counts what it checks, and its memory is not bounded; this limiter has its algorithm (GCRA).
pub(crate) struct AuthFailureLimiter {
    /// Time for which one failure counts. Failures count one after the other, for a minute at most.
    interval: Duration,
    /// When the last failure of a network ceases to count. At its maximum, a new network replaces one without recent
    /// checks. That network can fail as if it were new, and no network is refused because of others.
    networks: Mutex<Cache<IpAddr, Instant>>,
}

impl AuthFailureLimiter {
    pub(crate) fn new(per_minute: NonZeroU32) -> Self {
        Self { interval: MINUTE / per_minute.get(), networks: Mutex::new(Cache::new(MAX_NETWORKS)) }
    }

    /// Rejects a request from an address that has failed too often. Counts nothing.
    pub(crate) fn check(&self, client: IpAddr) -> Result<(), ApiError> {
        let Some(end) = self.lock().get(&network(client)).copied() else { return Ok(()) };
        let wait = (end + self.interval).saturating_duration_since(Instant::now() + MINUTE);
        // In whole seconds, rounded up: a client that waits for this time is admitted.
        match wait.as_secs() + u64::from(wait.subsec_nanos() > 0) {
            0 => Ok(()),
            seconds => Err(ApiError::TooManyAuthFailures(seconds)),
        }
    }

    /// Counts a failure. If requests that were in flight together fail, more than the maximum can fail: those beyond it
    /// are not counted.
    pub(crate) fn count(&self, client: IpAddr) {
        let (mut networks, network, now) = (self.lock(), network(client), Instant::now());
        let start = networks.get(&network).map_or(now, |end| now.max(*end));
        let end = start + self.interval;
        if end <= now + MINUTE {
            networks.insert(network, end);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cache<IpAddr, Instant>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
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
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    fn limiter(per_minute: u32) -> AuthFailureLimiter {
        AuthFailureLimiter::new(NonZeroU32::new(per_minute).expect("not 0"))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Returns the seconds after which a request from this address would be admitted.
    fn wait(limiter: &AuthFailureLimiter, client: &str) -> Option<u64> {
        match limiter.check(address(client)) {
            Ok(()) => None,
            Err(ApiError::TooManyAuthFailures(seconds)) => Some(seconds),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn fail(limiter: &AuthFailureLimiter, client: &str) {
        limiter.count(address(client));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_refused_after_its_failures_until_one_no_longer_counts() {
        let limiter = limiter(7);
        let client = "192.0.2.1";

        for _ in 0..7 {
            assert_eq!(wait(&limiter, client), None);
            fail(&limiter, client);
        }
        // A seventh of a minute: 8.57 s.
        assert_eq!(wait(&limiter, client), Some(9));
        fail(&limiter, client);
        assert_eq!(wait(&limiter, client), Some(9), "a failure beyond the maximum does not count");
        advance(Duration::from_millis(7600)).await;
        assert_eq!(wait(&limiter, client), Some(1));
        advance(Duration::from_secs(1)).await;
        assert_eq!(wait(&limiter, client), None);
        fail(&limiter, client);
        assert_eq!(wait(&limiter, client), Some(9));

        advance(MINUTE).await;
        (0..6).for_each(|_| fail(&limiter, client));
        assert_eq!(wait(&limiter, client), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_of_64_bits_counts_as_one_ipv6_address() {
        let limiter = limiter(1);
        fail(&limiter, "2001:db8:0:1::1");
        fail(&limiter, "192.0.2.1");

        for refused in ["2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", "192.0.2.1"] {
            assert_eq!(wait(&limiter, refused), Some(60), "{refused}");
        }
        for other in ["2001:db8::1", "2001:db8:0:2::1", "192.0.2.2", "::1"] {
            assert_eq!(wait(&limiter, other), None, "{other}");
        }
        assert_eq!(limiter.lock().len(), 2, "a check counts no failure");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_addresses_is_bounded_and_a_new_one_is_limited_at_the_maximum() {
        let limiter = limiter(1);
        let refused = "198.51.100.1";
        fail(&limiter, refused);

        for address in 0..u32::try_from(MAX_NETWORKS).expect("a small number") * 3 {
            let client = IpAddr::V4(Ipv4Addr::from_bits(address));
            assert!(limiter.check(client).is_ok(), "another address refuses {client}");
            limiter.count(client);
            assert!(limiter.check(client).is_err(), "{client} is not limited");
            assert!(limiter.lock().len() <= MAX_NETWORKS);
            // An address that continues to send requests stays refused.
            assert_eq!(wait(&limiter, refused), Some(60), "after {client}");
        }
    }
}
