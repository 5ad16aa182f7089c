use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::IdempotencyKey;
use tokio::sync::watch;

/// The idempotency keys of the creates that are in flight in this process.
#[derive(Default)]
pub(super) struct InFlightKeys(Mutex<HashMap<IdempotencyKey, watch::Receiver<()>>>);

/// A key that is in flight until this is dropped.
pub(super) struct InFlightKey {
    pub(super) key: IdempotencyKey,
    keys: Arc<InFlightKeys>,
    /// Wakes the creates that wait for the key. It is dropped after the key is free.
    _ended: watch::Sender<()>,
}

impl InFlightKeys {
    /// Waits until the key is free.
    pub(super) async fn acquire(self: &Arc<Self>, key: IdempotencyKey) -> InFlightKey {
        loop {
            let mut earlier = match self.lock().entry(key.clone()) {
                Entry::Occupied(entry) => entry.get().clone(),
                Entry::Vacant(entry) => {
                    let (ended, receiver) = watch::channel(());
                    entry.insert(receiver);
                    return InFlightKey { key, keys: Arc::clone(self), _ended: ended };
                }
            };
            // Fails when the earlier create has ended.
            let _ = earlier.changed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IdempotencyKey, watch::Receiver<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightKey {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use animal_store_app::ApiKeyId;
    use futures_util::FutureExt;
    use tokio::task::{JoinSet, yield_now};

    use super::*;

    fn key() -> IdempotencyKey {
        IdempotencyKey::new(ApiKeyId::new("key"), "once")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_key_is_in_flight_once_and_each_waiting_create_gets_it() {
        let (keys, holders) = (Arc::new(InFlightKeys::default()), Arc::new(AtomicUsize::new(0)));
        let mut creates = JoinSet::new();
        for _ in 0..100 {
            let (keys, holders) = (Arc::clone(&keys), Arc::clone(&holders));
            creates.spawn(async move {
                let _in_flight = keys.acquire(key()).await;
                assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0, "two creates have one key");
                yield_now().await;
                holders.fetch_sub(1, Ordering::Relaxed);
            });
        }
        creates.join_all().await;
        assert!(keys.lock().is_empty());
    }

    #[test]
    fn a_create_that_stops_waiting_leaves_the_key_to_the_next_one() {
        let keys = Arc::new(InFlightKeys::default());
        let first = keys.acquire(key()).now_or_never().expect("it is free");
        let [mut dropped, mut waiting] = [(); 2].map(|()| Box::pin(keys.acquire(key())));
        assert!((&mut dropped).now_or_never().is_none() && (&mut waiting).now_or_never().is_none());
        drop((dropped, first));
        assert!(waiting.now_or_never().is_some());
        assert!(keys.lock().is_empty());
    }
}
