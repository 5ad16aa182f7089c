use std::sync::Arc;

use animal_store_adapter_kit::metrics::QueueMetrics;
use animal_store_app::ports::{Readiness, UNFINISHED_COPY};
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    SqliteFile, SqliteFileError, SqlitePetRepository, SqliteSettings, bulk::has_unfinished_copy,
    creates::Creates, reads, session::Session,
};

/// Storage of a process: its writer, and what the repositories of its workers need.
pub struct SqliteStorage {
    settings: SqliteSettings,
    read_metrics: QueueMetrics,
    creates: Arc<Creates>,
}

impl SqliteStorage {
    /// Starts the writer, on the current runtime. Metrics are registered with the prefix `storage`.
    ///
    /// The returned task ends after this and the last repository are dropped, all queued creates have their outcome,
    /// and the connections are closed.
    ///
    /// # Errors
    /// If a connection to the file cannot be opened.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        file: &SqliteFile,
        settings: SqliteSettings,
        registry: &mut Registry,
    ) -> Result<(Self, JoinHandle<()>), SqliteFileError> {
        if Session::new(file).execute(|connection| Ok(has_unfinished_copy(connection)?))? {
            tracing::warn!(file = %file.path().display(), "{UNFINISHED_COPY}");
        }
        let [read_metrics, create_metrics] = QueueMetrics::register(registry, ["read", "create"]);
        let (creates, writer) = Creates::start(file, &settings, create_metrics);
        let storage = Self {
            settings,
            read_metrics,
            creates: Arc::new(creates),
        };
        Ok((storage, writer))
    }

    /// Returns the repository of one worker, which reads on the current runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn repository(&self) -> SqlitePetRepository {
        let metrics = self.read_metrics.clone();
        let reads = reads::start(&self.creates, self.settings.max_waiting_reads, metrics);
        SqlitePetRepository::new(reads, Arc::clone(&self.creates))
    }

    /// Returns the probe of reads and creates. It does not keep the storage from ending.
    pub fn readiness(&self) -> Arc<dyn Readiness> {
        Arc::new(Arc::downgrade(&self.creates))
    }
}
