use std::{sync::atomic::Ordering, time::Duration};

use tokio::sync::watch;

use crate::concurrency::{AtomicBool, AtomicU64, Instant, Notify};

/// Validity of the whole cache. It is compared at each lookup: no timer has to fire for it to expire. It is renewed
/// while lookups need it, and otherwise expires; the next lookup waits for a renewal.
#[derive(Debug)]
pub(crate) struct Lease {
    start: Instant,
    /// Nanoseconds after `start`; 0 if the lease has expired.
    end: AtomicU64,
    length: Duration,
    renewals: watch::Sender<()>,
    /// Whether a lookup needed the lease since the last heartbeat was sent.
    is_needed: AtomicBool,
    need: Notify,
}

impl Lease {
    /// Creates a lease that has expired.
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            start: Instant::now(),
            end: AtomicU64::new(0),
            length,
            renewals: watch::Sender::new(()),
            is_needed: AtomicBool::new(false),
            need: Notify::new(),
        }
    }

    /// Extends the lease after the response to a heartbeat that was sent at this moment.
    pub(crate) fn renew(&self, sent: Instant) {
        self.end
            .store(self.nanoseconds(sent + self.length), Ordering::Release);
        self.renewals.send_replace(());
    }

    pub(crate) fn expire(&self) {
        self.end.store(0, Ordering::Release);
    }

    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        self.nanoseconds(now) < self.end.load(Ordering::Acquire)
    }

    /// Requests the next heartbeat.
    pub(crate) fn need(&self) {
        // Lookups share this flag: it is written once per heartbeat.
        if !self.is_needed.load(Ordering::Relaxed) {
            self.is_needed.store(true, Ordering::Relaxed);
            self.need.notify_one();
        }
    }

    /// Waits until a lookup needs the lease.
    pub(crate) async fn needed(&self) {
        self.need.notified().await;
        self.is_needed.store(false, Ordering::Relaxed);
    }

    /// Waits until the lease is valid.
    pub(crate) async fn valid(&self) {
        let mut renewals = self.renewals.subscribe();
        while !self.is_valid(Instant::now()) {
            self.need();
            let _ = renewals.changed().await;
        }
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
