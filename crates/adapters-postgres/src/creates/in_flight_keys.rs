use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::IdempotencyKey;
use tokio::sync::Notify;

/// The idempotency keys of the creates that are in flight in this process.
#[derive(Default)]
pub(super) struct InFlightKeys {
    keys: Mutex<HashSet<IdempotencyKey>>,
    /// Wakes the creates that wait for a key.
    freed: Notify,
}

/// A key that is in flight until this is dropped.
pub(super) struct InFlightKey {
    pub(super) key: IdempotencyKey,
    keys: Arc<InFlightKeys>,
}

impl InFlightKeys {
    /// Waits until the key is free.
    pub(super) async fn acquire(self: &Arc<Self>, key: IdempotencyKey) -> InFlightKey {
        loop {
            // It is woken from now on, not only after it is polled.
            let freed = self.freed.notified();
            if self.lock().insert(key.clone()) {
                return InFlightKey {
                    key,
                    keys: Arc::clone(self),
                };
            }
            freed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<IdempotencyKey>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightKey {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.key);
        self.keys.freed.notify_waiters();
    }
}
