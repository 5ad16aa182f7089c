//! Warnings that a client can cause, and therefore must not be able to repeat at will.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const INTERVAL: Duration = Duration::from_mins(1);

/// Admits one warning per reason and minute, over all workers. The number of reasons has to be bounded.
#[derive(Debug)]
pub(crate) struct OncePerMinute<R>(Mutex<HashMap<R, Instant>>);

impl<R: Eq + Hash> OncePerMinute<R> {
    /// Returns whether the warning is to be logged now.
    pub(crate) fn admits(&self, reason: R) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = logged
            .get(&reason)
            .is_none_or(|last| now - *last >= INTERVAL);
        if is_due {
            logged.insert(reason, now);
        }
        is_due
    }
}

impl<R> Default for OncePerMinute<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_reason_has_one_warning_per_minute() {
        let warnings = OncePerMinute::default();
        for (seconds, reason, admitted) in [
            (0, "a", true),
            (0, "a", false),
            (0, "b", true),
            (59, "a", false),
            (1, "a", true),
            (59, "b", true),
            (0, "a", false),
        ] {
            advance(Duration::from_secs(seconds)).await;
            assert_eq!(warnings.admits(reason), admitted, "{seconds} {reason}");
        }
    }
}
