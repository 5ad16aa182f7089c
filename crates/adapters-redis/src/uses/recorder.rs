use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animal_store_app::{
    ApiKeyId,
    ports::{ApiKeyUse, ApiKeyUses},
};
use tokio::sync::mpsc::UnboundedSender;

use crate::use_record::KINDS;

/// Notes the uses of API keys in one worker.
pub struct UseRecorder {
    noted: Arc<NotedUses>,
    /// The writer ends after all recorders are dropped.
    _registration: UnboundedSender<Arc<NotedUses>>,
}

/// The keys that were used since the last write.
pub(crate) struct NotedUses {
    uses: Mutex<Uses>,
    /// Maximum number of keys of each kind.
    max_keys: usize,
}

#[derive(Default)]
pub(crate) struct Uses {
    /// The keys of each of [`KINDS`].
    pub(crate) keys: [HashSet<ApiKeyId>; KINDS.len()],
    /// Number of uses beyond the bound.
    pub(crate) dropped: u64,
}

impl UseRecorder {
    pub(crate) fn new(max_keys: usize, registration: UnboundedSender<Arc<NotedUses>>) -> Self {
        let noted = Arc::new(NotedUses { uses: Mutex::default(), max_keys });
        // Fails if the writer has ended, and then nothing is recorded.
        let _ = registration.send(Arc::clone(&noted));
        Self { noted, _registration: registration }
    }
}

impl ApiKeyUses for UseRecorder {
    fn note(&self, id: &ApiKeyId, kind: ApiKeyUse) {
        let mut uses = self.noted.lock();
        let keys = &mut uses.keys[kind as usize];
        if keys.contains(id) {
            return;
        }
        if keys.len() < self.noted.max_keys {
            keys.insert(id.clone());
        } else {
            uses.dropped += 1;
        }
    }
}

impl NotedUses {
    pub(crate) fn take(&self) -> Uses {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Uses> {
        // A panic under the lock leaves no partial change.
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
