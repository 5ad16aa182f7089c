use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Until when the cache counts: a moment that each answer puts off, and that nothing has to be awake for to pass.
#[derive(Debug)]
pub(crate) struct Lease {
    start: Instant,
    /// Nanoseconds after `start`; 0 is over.
    end: AtomicU64,
    length: Duration,
}

impl Lease {
    pub(crate) fn new(length: Duration) -> Self {
        Self { start: Instant::now(), end: AtomicU64::new(0), length }
    }

    /// An answer came to something that was asked at this moment: whatever was changed before it was reported.
    pub(crate) fn renew(&self, asked: Instant) {
        self.end.store(self.nanoseconds(asked + self.length), Ordering::Release);
    }

    /// It is over now.
    pub(crate) fn end(&self) {
        self.end.store(0, Ordering::Release);
    }

    /// Whether it holds at this moment.
    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.nanoseconds(now) < self.end.load(Ordering::Acquire)
    }

    fn nanoseconds(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_holds_for_its_length_after_the_question() {
        let lease = Lease::new(SECOND);
        let asked = Instant::now();
        assert!(!lease.holds(asked), "nothing has been answered");

        lease.renew(asked);
        assert!(lease.holds(asked + SECOND.mul_f64(0.999)));
        assert!(!lease.holds(asked + SECOND));

        lease.end();
        assert!(!lease.holds(asked));
    }
}
