//! The limit on failed authentications, with lookups of API keys that take time.

use std::num::NonZeroU32;

use animal_store_test_servers::{RawConnection, wait_until};

use crate::slow_service::SlowService;

/// More than the limit.
const BURST: usize = 40;
/// A busy machine sends the burst in less than half a minute, after which another failure is admitted.
const LIMIT: usize = 2;

/// Starts a service that admits a few failures per minute.
fn start() -> SlowService {
    SlowService::start(|settings| settings.auth_failures = NonZeroU32::new(2))
}

/// Begins a burst, and returns when each of its requests is in flight.
fn begin_burst(slow: &SlowService, token: &str) -> Vec<RawConnection> {
    let burst: Vec<_> = (0..BURST).map(|_| slow.begin(token)).collect();
    let in_flight = format!("http_requests_in_flight {BURST}");
    wait_until(|| slow.service.has_metric(&in_flight));
    wait_until(|| slow.started() >= LIMIT);
    assert_eq!(slow.started(), LIMIT);
    burst
}

fn statuses(burst: Vec<RawConnection>) -> Vec<u16> {
    let status = |mut connection: RawConnection| connection.response().status;
    burst.into_iter().map(status).collect()
}

#[test]
fn one_burst_of_requests_with_a_valid_key_is_served() {
    let slow = start();
    let burst = begin_burst(&slow, "slow");

    slow.release();
    assert_eq!(statuses(burst), [200; BURST]);
}

#[test]
fn of_one_burst_of_guesses_as_many_are_looked_up_as_may_fail_and_a_key_in_memory_is_served() {
    let slow = start();
    let burst = begin_burst(&slow, "guess");

    slow.begin("cached").response().assert_status(200);

    slow.release();
    let statuses = statuses(burst);
    let with = |status| statuses.iter().filter(|&&given| given == status).count();
    assert_eq!((with(401), with(429)), (LIMIT, BURST - LIMIT));
    assert_eq!(slow.started(), LIMIT);
    let refused = slow.begin("cached").response();
    refused.assert_error(429, "rate_limited");
}
