use std::sync::Arc;

use animal_store_app::{
    ApiKeyId, NotedUses,
    ports::{ApiKeyUse, ApiKeyUses},
};
use tokio::sync::mpsc::UnboundedSender;

/// Notes the uses of API keys in one worker.
pub struct UseRecorder {
    noted: Arc<NotedUses>,
    /// The writer ends after all recorders are dropped.
    _registration: UnboundedSender<Arc<NotedUses>>,
}

impl UseRecorder {
    pub(crate) fn new(max_keys: usize, registration: UnboundedSender<Arc<NotedUses>>) -> Self {
        let noted = Arc::new(NotedUses::new(max_keys));
        // Fails if the writer has ended, and then nothing is recorded.
        let _ = registration.send(Arc::clone(&noted));
        Self { noted, _registration: registration }
    }
}

impl ApiKeyUses for UseRecorder {
    fn note(&self, id: &ApiKeyId, kind: ApiKeyUse) {
        self.noted.note(id, kind);
    }
}
