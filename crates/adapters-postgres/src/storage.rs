use std::{sync::Arc, time::Duration};

use animal_store_app::ports::Readiness;
use prometheus_client::registry::Registry;
use tokio::{
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{
    MigrationError, Migrations, PgEndpoint, PgPetRepository, PostgresSettings,
    connection::ConnectionSettings, creates::Creates, metrics::Metrics, readiness::PgReadiness,
    reads::Reads, schema::prepare_schema, sweep::sweep_periodically,
};

/// How long the start waits for the schema if PostgreSQL is not required.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Storage of a process: the schema, the connections that write, and the sweep of idempotency keys.
///
/// Dropping it stops the background tasks, but not the writers: see [`start`](Self::start).
pub struct PgStorage {
    connections: ConnectionSettings,
    creates: Arc<Creates>,
    readiness: Arc<PgReadiness>,
    /// Dropping them ends the tasks.
    _background_tasks: JoinSet<()>,
}

impl PgStorage {
    /// Starts to use a database, on the current runtime, which has to have several threads. `direct` leads to the same
    /// database for migrations, past a pooler if there is one. Metrics are registered with the prefixes `storage` and
    /// `postgres`.
    ///
    /// The returned task writes all creates. It ends after the last repository is dropped and all queued creates have
    /// their response, or a task panics.
    ///
    /// # Errors
    /// If the schema cannot be used and no retry can change that, or if PostgreSQL is required at the start and cannot
    /// be reached.
    pub async fn start(
        endpoint: PgEndpoint,
        direct: PgEndpoint,
        settings: PostgresSettings,
        registry: &mut Registry,
    ) -> Result<(Self, JoinHandle<()>), MigrationError> {
        let metrics = Metrics::new(registry);
        let endpoint = endpoint.of_primary(settings.transaction_pooling);
        let migrations = Migrations::new(direct, settings.connect_timeout);
        let (ready, schema_ready) = watch::channel(false);
        let (error_sender, mut start_error) = oneshot::channel();
        let preparation = prepare_schema(
            migrations,
            settings.clone(),
            endpoint.clone(),
            ready,
            error_sender,
        );
        let mut background_tasks = JoinSet::new();
        background_tasks.spawn(preparation);
        let wait = if settings.required_at_start {
            Duration::MAX
        } else {
            START_TIMEOUT
        };
        let error = if let Ok(sent) = timeout(wait, &mut start_error).await {
            sent.ok()
        } else {
            // An error that was sent at this moment has ended the preparation.
            start_error.close();
            start_error.try_recv().ok()
        };
        if let Some(error) = error {
            return Err(error);
        }
        let connections = ConnectionSettings::new(endpoint, settings, metrics, schema_ready);
        let (creates, writers) = Creates::start(&connections);
        let creates = Arc::new(creates);
        let readiness = Arc::new(PgReadiness::new(&connections, &creates));
        let panics = &connections.panics;
        background_tasks.spawn(panics.clone().note(Arc::clone(&readiness).watch()));
        let sweeps = sweep_periodically(connections.clone());
        background_tasks.spawn(panics.clone().note(sweeps));
        Ok((
            Self {
                connections,
                creates,
                readiness,
                _background_tasks: background_tasks,
            },
            writers,
        ))
    }

    /// Returns a repository for one worker.
    pub fn repository(&self) -> PgPetRepository {
        let reads = Arc::new(Reads::new(self.connections.clone()));
        self.readiness.add_reads(&reads);
        PgPetRepository::new(reads, Arc::clone(&self.creates))
    }

    /// Returns the probe of reads and creates.
    pub fn readiness(&self) -> Arc<dyn Readiness> {
        self.readiness.clone()
    }
}
