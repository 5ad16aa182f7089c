//! How an import waits for a store that fails.
//!
//! A store that has accepted a pet of this import is expected back, after a restart or on a slow disk. One that has
//! accepted none may be configured wrongly, so it gets less time. The log has each reason once per outage, and the end
//! of the outage.

use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use animal_store_app::ports::AddPetError;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep};

/// How long a create is repeated, from its first failure.
const LIMIT: Duration = Duration::from_mins(1);

/// The same until the first create of the import has succeeded.
const FIRST_LIMIT: Duration = Duration::from_secs(10);

const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause, without its jitter of up to the same duration.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// The store, as all creates of an import see it.
#[derive(Default)]
pub(super) struct Outage(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    has_accepted: bool,
    /// Number of creates whose last attempt failed.
    failing: usize,
    logged_reasons: BTreeSet<String>,
}

/// The waits of one create.
pub(super) struct Waits {
    state: Arc<Mutex<State>>,
    failing_since: Option<Instant>,
    pauses: ExponentialBackoff,
}

impl Outage {
    pub(super) fn waits(&self) -> Waits {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(MIN_PAUSE)
            .with_max_delay(MAX_PAUSE)
            .without_max_times()
            .with_jitter();
        Waits {
            state: Arc::clone(&self.0),
            failing_since: None,
            pauses: pauses.build(),
        }
    }
}

impl Waits {
    /// Waits before the next attempt. Returns `false` at once if the create has failed for too long.
    pub(super) fn pause(&mut self, error: &AddPetError) -> impl Future<Output = bool> + use<> {
        let pause = self.next_pause(error);
        async move {
            let Some(pause) = pause else { return false };
            sleep(pause).await;
            true
        }
    }

    fn next_pause(&mut self, error: &AddPetError) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.failing_since.is_none() {
            state.failing += 1;
        }
        let limit = if state.has_accepted {
            LIMIT
        } else {
            FIRST_LIMIT
        };
        let failing_since = self.failing_since.get_or_insert_with(Instant::now);
        if failing_since.elapsed() >= limit {
            return None;
        }
        let reason = error.to_string();
        if !state.logged_reasons.contains(&reason) {
            tracing::warn!(reason, "the import waits for the store");
            state.logged_reasons.insert(reason);
        }
        Some(self.pauses.next().unwrap_or(MAX_PAUSE))
    }

    /// Records that the create has succeeded.
    pub(super) fn succeeded(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.has_accepted = true;
        if self.failing_since.take().is_some() {
            state.failing -= 1;
        }
        if state.failing == 0 && !mem::take(&mut state.logged_reasons).is_empty() {
            tracing::info!("the import continues");
        }
    }
}

#[cfg(test)]
mod tests {
    use animal_store_app::ports::StoreFailure;

    use super::*;

    /// Returns the time after which a create that always fails is given up.
    async fn given_up_after(outage: &Outage) -> Duration {
        let start = Instant::now();
        let mut waits = outage.waits();
        while waits.pause(&StoreFailure::Timeout.into()).await {}
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_has_accepted_a_pet_gets_a_minute_and_any_other_ten_seconds() {
        let outage = Outage::default();
        let longest_pause = 2 * MAX_PAUSE;
        let first = given_up_after(&outage).await;
        assert!(FIRST_LIMIT <= first && first <= FIRST_LIMIT + longest_pause);

        outage.waits().succeeded();
        let later = given_up_after(&outage).await;
        assert!(LIMIT <= later && later <= LIMIT + longest_pause);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_create_begins_with_its_own_first_failure() {
        let outage = Outage::default();
        outage.waits().succeeded();
        given_up_after(&outage).await;
        let mut waits = outage.waits();
        assert!(waits.pause(&StoreFailure::Overloaded.into()).await);
    }
}
