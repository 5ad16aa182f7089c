//! Retry with backoff that logs each reason once per outage.

use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause, without its jitter of up to the same duration.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Reasons of an outage that one task keeps in mind: a reason with a changing part must not fill the memory.
const MAX_REASONS: usize = 100;

/// The current outage of several tasks. It ends when none of them fails.
#[derive(Debug, Default)]
pub struct OutageLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failing_tasks: usize,
    logged_reasons: BTreeSet<String>,
}

/// The part of one task in an outage.
#[derive(Debug)]
pub struct Outage {
    log: Arc<OutageLog>,
    failing: bool,
    backoff: ExponentialBackoff,
}

impl Outage {
    /// Tasks that share the log share their outages.
    pub fn new(log: &Arc<OutageLog>) -> Self {
        Self { log: Arc::clone(log), failing: false, backoff: backoff(MIN_PAUSE, MAX_PAUSE) }
    }

    /// Records a failed attempt, and calls `log` if its reason is new in this outage.
    pub fn failed(&mut self, reason: String, log: impl FnOnce(&str)) {
        let mut state = self.log.lock();
        state.failing_tasks += usize::from(!self.failing);
        self.failing = true;
        if !state.logged_reasons.contains(&reason) && state.logged_reasons.len() < MAX_REASONS {
            log(&reason);
            state.logged_reasons.insert(reason);
        }
    }

    /// Records a successful attempt. Returns whether that ended an outage.
    pub fn succeeded(&mut self) -> bool {
        let mut state = self.log.lock();
        state.failing_tasks -= usize::from(self.failing);
        self.failing = false;
        state.failing_tasks == 0 && !mem::take(&mut state.logged_reasons).is_empty()
    }

    /// Returns the pause before the next attempt. An attempt that lasted longer than `timeout` and the longest pause
    /// resets the backoff.
    pub fn next_pause(&mut self, attempt: Duration, timeout: Duration) -> Duration {
        if attempt > MAX_PAUSE + timeout {
            self.backoff = backoff(MIN_PAUSE, MAX_PAUSE);
        }
        self.backoff.next().unwrap_or(MAX_PAUSE)
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.log.lock().failing_tasks -= usize::from(self.failing);
    }
}

impl OutageLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns pauses that double from `min` to `max`; jitter adds up to the pause itself.
pub fn backoff(min: Duration, max: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new().with_min_delay(min).with_max_delay(max).without_max_times().with_jitter().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_logged_once_until_all_tasks_have_succeeded() {
        let log = Arc::default();
        let [mut one, mut other] = [Outage::new(&log), Outage::new(&log)];
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
    fn pauses_grow_to_their_bound_and_a_long_attempt_resets_them() {
        let (timeout, mut outage) = (Duration::from_secs(1), Outage::new(&Arc::default()));
        let longest_attempt = MAX_PAUSE + timeout;
        for milliseconds in [10, 20, 40, 80, 160, 320, 500, 500] {
            let pause = Duration::from_millis(milliseconds);
            let next = outage.next_pause(longest_attempt, timeout);
            assert!((pause..=2 * pause).contains(&next), "{next:?}, not {pause:?}");
        }
        assert!(outage.next_pause(longest_attempt + Duration::from_nanos(1), timeout) <= 2 * MIN_PAUSE);
    }
}
