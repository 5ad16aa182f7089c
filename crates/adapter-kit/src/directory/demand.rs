use std::sync::atomic::{AtomicBool, Ordering};

use crate::concurrency::Notify;

/// Whether lookups have come since the last check began. A directory that is not asked sends nothing to its store,
/// except for the first check, and for retries after a failure.
#[derive(Default)]
pub(super) struct Demand {
    is_asked: AtomicBool,
    asked: Notify,
}

impl Demand {
    /// Asks for the next check.
    pub(super) fn ask(&self) {
        // Threads that only read it do not slow each other down.
        if !self.is_asked.load(Ordering::Relaxed) && !self.is_asked.swap(true, Ordering::Relaxed) {
            self.asked.notify_one();
        }
    }

    /// Forgets earlier lookups.
    pub(super) fn reset(&self) {
        self.is_asked.store(false, Ordering::Relaxed);
    }

    /// Waits until a lookup asks for a check. Returns whether it had to wait: the connection may have been idle.
    pub(super) async fn wait(&self) -> bool {
        let mut has_waited = false;
        while !self.is_asked.load(Ordering::Relaxed) {
            has_waited = true;
            self.asked.notified().await;
        }
        has_waited
    }
}
