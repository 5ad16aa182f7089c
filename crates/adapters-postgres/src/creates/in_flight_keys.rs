use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
};

use animal_store_app::IdempotencyKey;

use crate::concurrency::{Mutex, MutexGuard};

/// The idempotency keys of the requests that are in flight in this process.
#[derive(Default)]
pub(super) struct InFlightKeys(Mutex<HashSet<IdempotencyKey>>);

/// A key that is in flight until this is dropped.
pub(super) struct InFlightKey {
    pub(super) key: IdempotencyKey,
    keys: Arc<InFlightKeys>,
}

impl InFlightKeys {
    /// Returns `None` if the key is in flight already.
    pub(super) fn insert(self: &Arc<Self>, key: IdempotencyKey) -> Option<InFlightKey> {
        let inserted = self.lock().insert(key.clone());
        inserted.then(|| InFlightKey { key, keys: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<IdempotencyKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightKey {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.key);
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
