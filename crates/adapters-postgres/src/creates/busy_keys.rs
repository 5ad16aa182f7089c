use std::{
    collections::HashSet,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::IdempotencyKey;

/// The idempotency keys that this process is adding animals with.
#[derive(Default)]
pub(super) struct BusyKeys(Mutex<HashSet<IdempotencyKey>>);

/// One of them, until this is dropped.
pub(super) struct BusyKey {
    key: IdempotencyKey,
    keys: Arc<BusyKeys>,
}

impl BusyKeys {
    /// Makes a key busy; `None` where it is.
    pub(super) fn take(self: &Arc<Self>, key: IdempotencyKey) -> Option<BusyKey> {
        let taken = self.lock().insert(key.clone());
        taken.then(|| BusyKey { key, keys: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<IdempotencyKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for BusyKey {
    type Target = IdempotencyKey;

    fn deref(&self) -> &IdempotencyKey {
        &self.key
    }
}

impl Drop for BusyKey {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.key);
    }
}
