use std::{sync::Arc, time::Duration};

use animal_store_adapter_kit::{ApiKeySnapshot, ApiKeyUseRecord, Outage};
use animal_store_app::ports::Readiness;
use prometheus_client::registry::Registry;
use tokio::{
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{
    MigrationError, Migrations, PgEndpoint, PgPetRepository, PostgresSettings,
    connection::ConnectionSettings,
    creates::Creates,
    keys::{KeyReader, UseWriter},
    metrics::Metrics,
    readiness::PgReadiness,
    schema::prepare_schema,
    sweep::sweep_periodically,
};

/// How long the start waits for the schema if PostgreSQL is not required.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of API keys of each kind whose uses are not written yet. It bounds the memory if writes fail.
const MAX_USED_KEYS: usize = 100_000;

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
    /// their response.
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
        let metrics = Arc::new(Metrics::new(registry));
        let endpoint = endpoint.named(settings.transaction_pooling).of_primary(settings.transaction_pooling);
        let migrations = Migrations::new(direct, settings.connect_timeout);
        let (ready, schema_ready) = watch::channel(false);
        let (error_sender, mut start_error) = oneshot::channel();
        let preparation = prepare_schema(migrations, settings.clone(), endpoint.clone(), ready, error_sender);
        let mut background_tasks = JoinSet::new();
        background_tasks.spawn(preparation);
        let wait = if settings.required_at_start { Duration::MAX } else { START_TIMEOUT };
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
        let connections = ConnectionSettings {
            endpoint,
            postgres: settings,
            outage: Outage::default(),
            metrics,
            schema_ready,
            demoted: watch::Sender::default(),
            must_probe: Arc::default(),
        };
        let (creates, writers) = Creates::start(&connections);
        let creates = Arc::new(creates);
        let readiness = Arc::new(PgReadiness::new(&connections, &creates));
        background_tasks.spawn(Arc::clone(&readiness).watch());
        background_tasks.spawn(sweep_periodically(connections.clone()));
        Ok((Self { connections, creates, readiness, _background_tasks: background_tasks }, writers))
    }

    /// Returns a repository for one worker.
    pub fn repository(&self) -> PgPetRepository {
        PgPetRepository::new(self.connections.clone(), Arc::clone(&self.creates))
    }

    /// Starts a directory of the API keys in the database: see [`ApiKeySnapshot::new`]. The handle resolves after it is
    /// dropped, and its connection is closed.
    pub fn start_api_keys(&self, registry: &mut Registry) -> (ApiKeySnapshot, JoinHandle<()>) {
        let source = KeyReader::new(&self.connections);
        let (directory, task) = ApiKeySnapshot::new(source, self.connections.postgres.timeout, registry);
        (directory, tokio::spawn(task))
    }

    /// Starts a record of the uses of these keys: see [`ApiKeyUseRecord::start`].
    pub fn start_api_key_uses(&self, registry: &mut Registry) -> (ApiKeyUseRecord, JoinHandle<()>) {
        let interval = self.connections.postgres.uses_interval;
        ApiKeyUseRecord::start(UseWriter::new(&self.connections), MAX_USED_KEYS, interval, registry)
    }

    /// Returns the probe of reads and creates.
    pub fn readiness(&self) -> Arc<dyn Readiness> {
        self.readiness.clone()
    }
}
