use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::sleep;

/// Pause after the first failure.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Bound of the pauses, to which jitter adds up to as much.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Returns pauses that double from `min` to `max`; jitter adds up to the pause itself.
pub(crate) fn backoff(min: Duration, max: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new().with_min_delay(min).with_max_delay(max).without_max_times().with_jitter().build()
}

/// State of a loop that retries until it succeeds: the backoff, and the reason that was logged last.
pub(crate) struct Retry {
    pauses: ExponentialBackoff,
    logged: String,
}

impl Retry {
    pub(crate) fn new() -> Self {
        Self { pauses: backoff(MIN_PAUSE, MAX_PAUSE), logged: String::new() }
    }

    /// Logs the next failure, even if its reason is the same as before.
    pub(crate) fn succeeded(&mut self) {
        self.logged.clear();
    }

    /// Returns whether this reason differs from the last one, and so has to be logged.
    pub(crate) fn is_new(&mut self, reason: &str) -> bool {
        let new = reason != self.logged;
        reason.clone_into(&mut self.logged);
        new
    }

    /// Waits before the next attempt. An attempt that lasted longer than `timeout` and the longest pause resets the
    /// backoff.
    pub(crate) async fn pause(&mut self, attempt: Duration, timeout: Duration) {
        sleep(self.next_pause(attempt, timeout)).await;
    }

    fn next_pause(&mut self, attempt: Duration, timeout: Duration) -> Duration {
        if attempt > MAX_PAUSE + timeout {
            self.pauses = backoff(MIN_PAUSE, MAX_PAUSE);
        }
        self.pauses.next().unwrap_or(MAX_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_logged_once() {
        let mut retry = Retry::new();
        assert_eq!(["a", "a", "b", "a"].map(|reason| retry.is_new(reason)), [true, false, true, true]);
        retry.succeeded();
        assert!(retry.is_new("a"));
    }

    #[test]
    fn pauses_grow_to_their_bound_and_a_long_attempt_resets_them() {
        let (timeout, mut retry) = (Duration::from_secs(1), Retry::new());
        let longest_attempt = MAX_PAUSE + timeout;
        for milliseconds in [10, 20, 40, 80, 160, 320, 500, 500] {
            let pause = Duration::from_millis(milliseconds);
            let next = retry.next_pause(longest_attempt, timeout);
            assert!((pause..=2 * pause).contains(&next), "{next:?}, not {pause:?}");
        }
        assert!(retry.next_pause(longest_attempt + Duration::from_nanos(1), timeout) <= 2 * MIN_PAUSE);
    }
}
