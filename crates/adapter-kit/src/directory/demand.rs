use std::sync::atomic::{AtomicBool, Ordering};

use crate::concurrency::Notify;

/// Whether lookups have come since the last check began. A directory that is not asked sends nothing to its store.
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

    /// Waits until a lookup has asked for a check. Returns whether none had before.
    pub(super) async fn wait(&self) -> bool {
        let mut has_waited = false;
        while !self.is_asked.load(Ordering::Relaxed) {
            has_waited = true;
            self.asked.notified().await;
        }
        has_waited
    }
}
