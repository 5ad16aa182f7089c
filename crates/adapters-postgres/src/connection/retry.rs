//! Retry with backoff that logs each reason once per outage.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause, without its jitter of up to the same duration.
pub(super) const MAX_PAUSE: Duration = Duration::from_millis(500);

/// The current outage of several tasks. It ends when none of them fails.
#[derive(Default)]
pub(crate) struct OutageLog(Mutex<State>);

#[derive(Default)]
struct State {
    failing_tasks: usize,
    logged_reasons: BTreeSet<String>,
}

/// The part of one task in an outage.
pub(crate) struct Outage {
    log: Arc<OutageLog>,
    failing: bool,
    backoff: ExponentialBackoff,
}

impl Outage {
    /// Tasks that share the log share their outages.
    pub(crate) fn new(log: &Arc<OutageLog>) -> Self {
        Self { log: Arc::clone(log), failing: false, backoff: backoff() }
    }

    /// Records a failed attempt, and calls `log` if its reason is new in this outage.
    pub(crate) fn failed(&mut self, reason: String, log: impl FnOnce(&str)) {
        let mut state = self.log.lock();
        state.failing_tasks += usize::from(!self.failing);
        self.failing = true;
        if !state.logged_reasons.contains(&reason) {
            log(&reason);
            state.logged_reasons.insert(reason);
        }
    }

    /// Records a successful attempt. Returns whether that ended an outage.
    pub(crate) fn succeeded(&mut self) -> bool {
        let mut state = self.log.lock();
        state.failing_tasks -= usize::from(self.failing);
        self.failing = false;
        state.failing_tasks == 0 && !std::mem::take(&mut state.logged_reasons).is_empty()
    }

    pub(crate) fn next_pause(&mut self) -> Duration {
        self.backoff.next().unwrap_or(MAX_PAUSE)
    }

    pub(super) fn reset_backoff(&mut self) {
        self.backoff = backoff();
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

fn backoff() -> ExponentialBackoff {
    let pauses = ExponentialBuilder::new().with_min_delay(MIN_PAUSE).with_max_delay(MAX_PAUSE);
    pauses.without_max_times().with_jitter().build()
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
    fn pauses_grow_to_their_bound_until_they_are_reset() {
        let mut outage = Outage::new(&Arc::default());
        for _ in 0..2 {
            for milliseconds in [10, 20, 40, 80, 160, 320, 500, 500] {
                let (pause, next) = (Duration::from_millis(milliseconds), outage.next_pause());
                assert!((pause..=2 * pause).contains(&next), "{next:?}, not {pause:?}");
            }
            outage.reset_backoff();
        }
    }
}
