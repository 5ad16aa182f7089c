use std::{sync::atomic::Ordering, time::Duration};

use crate::concurrency::{AtomicU64, Instant};

/// Validity of the whole cache. It is compared at each lookup: no timer has to fire for it to expire.
#[derive(Debug)]
pub(crate) struct Lease {
    start: Instant,
    /// Nanoseconds after `start`; 0 if the lease has expired.
    end: AtomicU64,
    length: Duration,
}

impl Lease {
    /// Creates a lease that has expired.
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            start: Instant::now(),
            end: AtomicU64::new(0),
            length,
        }
    }

    /// Extends the lease after the response to a heartbeat that was sent at this moment.
    pub(crate) fn renew(&self, sent: Instant) {
        self.end
            .store(self.nanoseconds(sent + self.length), Ordering::Release);
    }

    pub(crate) fn expire(&self) {
        self.end.store(0, Ordering::Release);
    }

    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        self.nanoseconds(now) < self.end.load(Ordering::Acquire)
    }

    /// Time for which the lease is still valid.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        Duration::from_nanos(
            self.end
                .load(Ordering::Acquire)
                .saturating_sub(self.nanoseconds(now)),
        )
    }

    /// Time until half of the lease is left: then the next heartbeat is sent, however slow the last response was.
    pub(crate) fn until_half(&self, now: Instant) -> Duration {
        self.remaining(now).saturating_sub(self.length / 2)
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
    fn a_lease_is_valid_for_its_length_after_the_heartbeat_was_sent() {
        let lease = Lease::new(SECOND);
        let sent = Instant::now();
        assert!(!lease.is_valid(sent), "a new lease has expired");
        assert_eq!(lease.remaining(sent), Duration::ZERO);

        lease.renew(sent);
        assert!(lease.is_valid(sent + SECOND.mul_f64(0.999)));
        assert!(!lease.is_valid(sent + SECOND));
        assert_eq!(lease.remaining(sent + SECOND / 4), SECOND * 3 / 4);
        assert_eq!(lease.until_half(sent + SECOND / 8), SECOND * 3 / 8);
        assert_eq!(lease.until_half(sent + SECOND * 3 / 4), Duration::ZERO);
        assert_eq!(lease.remaining(sent + 2 * SECOND), Duration::ZERO);

        lease.expire();
        assert!(!lease.is_valid(sent));
    }
}
