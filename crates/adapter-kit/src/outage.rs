//! Retry with backoff that logs each reason once per outage.

use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause, without its jitter of up to the same duration.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Reasons of an outage that are kept in mind: a reason with a changing part must not fill the memory.
const MAX_REASONS: usize = 100;

/// An outage, as one task sees it. Clones are for other tasks: the outage ends when none of them fails.
#[derive(Debug)]
pub struct Outage {
    shared: Arc<Mutex<Shared>>,
    failing: bool,
    backoff: ExponentialBackoff,
}

#[derive(Debug, Default)]
struct Shared {
    failing_tasks: usize,
    logged_reasons: BTreeSet<String>,
}

impl Outage {
    fn of(shared: Arc<Mutex<Shared>>) -> Self {
        Self {
            shared,
            failing: false,
            backoff: backoff(MIN_PAUSE, MAX_PAUSE),
        }
    }

    /// Records a failed attempt, and calls `log` if its reason is new in this outage.
    pub fn failed(&mut self, reason: String, log: impl FnOnce(&str)) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.failing {
            self.failing = true;
            shared.failing_tasks += 1;
        }
        if !shared.logged_reasons.contains(&reason) && shared.logged_reasons.len() < MAX_REASONS {
            log(&reason);
            shared.logged_reasons.insert(reason);
        }
    }

    /// Records a successful attempt. Returns whether that ended an outage.
    pub fn succeeded(&mut self) -> bool {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if self.failing {
            self.failing = false;
            shared.failing_tasks -= 1;
        }
        shared.failing_tasks == 0 && !mem::take(&mut shared.logged_reasons).is_empty()
    }

    /// Returns the pause before the next attempt. An attempt that lasted longer than `timeout` plus the longest pause
    /// resets the backoff.
    pub fn next_pause(&mut self, attempt: Duration, timeout: Duration) -> Duration {
        if attempt > MAX_PAUSE + timeout {
            self.backoff = backoff(MIN_PAUSE, MAX_PAUSE);
        }
        self.backoff.next().unwrap_or(MAX_PAUSE)
    }
}

impl Default for Outage {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl Clone for Outage {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.shared))
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failing_tasks -= usize::from(self.failing);
    }
}

/// Returns pauses that double from `min` to `max`; jitter adds up to the pause itself.
pub fn backoff(min: Duration, max: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(min)
        .with_max_delay(max)
        .without_max_times()
        .with_jitter()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_logged_once_until_all_tasks_have_succeeded() {
        let mut one = Outage::default();
        let mut other = one.clone();
        let mut logged = Vec::new();
        one.failed("a".to_owned(), |reason| logged.push(reason.to_owned()));
        for reason in ["a", "b"] {
            other.failed(reason.to_owned(), |reason| logged.push(reason.to_owned()));
        }
        assert_eq!(logged, ["a", "b"]);
        assert!(!one.succeeded(), "the other task still fails");
        one.failed("a".to_owned(), |_| panic!("it was logged"));
        drop(other);
        assert!(one.succeeded() && !one.succeeded());
        one.failed("a".to_owned(), |reason| logged.push(reason.to_owned()));
        assert_eq!(logged, ["a", "b", "a"]);
    }

    #[test]
    fn reasons_with_a_changing_part_are_logged_up_to_a_bound() {
        let mut outage = Outage::default();
        let mut logged = 0;
        for number in 0..2 * MAX_REASONS {
            outage.failed(number.to_string(), |_| logged += 1);
        }
        assert_eq!(logged, MAX_REASONS);
    }

    #[test]
    fn pauses_grow_to_their_bound_and_a_long_attempt_resets_them() {
        let timeout = Duration::from_secs(1);
        let mut outage = Outage::default();
        let longest_attempt = MAX_PAUSE + timeout;
        for milliseconds in [10, 20, 40, 80, 160, 320, 500, 500] {
            let pause = Duration::from_millis(milliseconds);
            let next = outage.next_pause(longest_attempt, timeout);
            assert!(
                (pause..=2 * pause).contains(&next),
                "{next:?}, not {pause:?}"
            );
        }
        assert!(
            outage.next_pause(longest_attempt + Duration::from_nanos(1), timeout) <= 2 * MIN_PAUSE
        );
    }
}
