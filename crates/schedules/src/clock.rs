use std::{
    cell::Cell,
    ops::{Add, Sub},
    time::Duration,
};

thread_local! {
    // All tasks of a schedule run on one thread. Only differences matter, so schedules need not begin at zero.
    static NOW: Cell<Duration> = const { Cell::new(Duration::from_secs(1)) };
}

/// A moment of the modelled clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// Returns the current moment.
    pub fn now() -> Self {
        Self(NOW.get())
    }

    /// Moves the clock forward to this moment. It never moves back.
    pub(crate) fn pass(self) {
        NOW.set(NOW.get().max(self.0));
    }

    /// Returns the time since this moment.
    pub fn elapsed(self) -> Duration {
        Self::now() - self
    }

    /// Returns the time between two moments; zero if the other one is later.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
