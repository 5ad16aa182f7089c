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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use animal_store_app::ApiKeyId;
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_key_is_freed_by_the_end_of_its_create_alone() {
        let keys = Arc::new(InFlightKeys::default());
        let key = IdempotencyKey::new(ApiKeyId::from_random(&[1; 32]), "order-17");
        let in_flight = keys.acquire(key.clone()).await;
        for _ in 0..2 {
            let waiting = keys.acquire(key.clone()).now_or_never();
            assert!(waiting.is_none(), "the one before it was dropped");
        }
        let mut next = pin!(keys.acquire(key));
        assert!(next.as_mut().now_or_never().is_none());
        drop(in_flight);
        assert!(next.now_or_never().is_some(), "the next one was not woken");
    }
}
