use std::sync::Arc;

use animal_store_app::ports::Readiness;
use prometheus_client::registry::Registry;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    SqliteFile, SqliteFileError, SqlitePetRepository, SqliteSettings, creates::Creates, metrics::Metrics,
    readiness::SqliteReadiness, reads::Reads, threads::Threads,
};

/// Storage of a process: the threads that read and write pets in a file.
pub struct SqliteStorage(Arc<Threads>);

impl SqliteStorage {
    /// Starts the threads, on the current runtime. Metrics are registered with the prefix `sqlite`.
    ///
    /// The returned task ends after this and the last repository are dropped, all queued creates have their outcome,
    /// and the threads have ended.
    ///
    /// # Errors
    /// If a connection to the file cannot be opened.
    #[expect(clippy::needless_pass_by_value, reason = "the settings of a storage are its own")]
    pub fn start(
        file: &SqliteFile,
        settings: SqliteSettings,
        registry: &mut Registry,
    ) -> Result<(Self, JoinHandle<()>), SqliteFileError> {
        let metrics = Arc::new(Metrics::new(registry.sub_registry_with_prefix("sqlite")));
        let (running, mut ended) = mpsc::channel(1);
        let reads = Reads::start(file, &settings, &metrics, &running)?;
        let creates = Creates::start(file, &settings, &metrics, &running)?;
        let threads = tokio::spawn(async move { while ended.recv().await.is_some() {} });
        Ok((Self(Arc::new(Threads { reads, creates })), threads))
    }

    /// Returns a repository for any number of workers.
    pub fn repository(&self) -> SqlitePetRepository {
        SqlitePetRepository(Arc::clone(&self.0))
    }

    /// Returns the probe of reads and creates.
    pub fn readiness(&self) -> Arc<dyn Readiness> {
        Arc::new(SqliteReadiness(Arc::downgrade(&self.0)))
    }
}
