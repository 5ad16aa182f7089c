use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU32, Ordering},
};

use animal_store_app::ports::{Cause, Readiness};
use async_trait::async_trait;
use tokio::{sync::Mutex as AsyncMutex, time::sleep};

use crate::{
    connection::{ConnectionSettings, OpenConnection, within},
    creates::Creates,
    error::{ConnectionError, READ_ONLY},
    reads::Reads,
};

/// Reads the table, and checks that it can be written. The statement is not prepared, so it works through any pooler.
const PROBE: &str = "
    SELECT current_setting('transaction_read_only') = 'on', 'pets'::regclass::oid, EXISTS (SELECT FROM pets)";

/// Probe of PostgreSQL: ready if pets can be read and added.
pub(crate) struct PgReadiness {
    settings: ConnectionSettings,
    /// Does not keep the dispatchers of creates running.
    creates: Weak<Creates>,
    /// Those of all workers. A worker that has not read yet has no connection.
    reads: Mutex<Vec<Weak<Reads>>>,
    /// The connection of the last check, unless it failed. Checks at the same time take turns.
    connection: AsyncMutex<Option<OpenConnection>>,
    /// Object identifier of the table of pets, or 0 before the first check. A restore makes another table.
    table: AtomicU32,
}

impl PgReadiness {
    pub(crate) fn new(settings: &ConnectionSettings, creates: &Arc<Creates>) -> Self {
        Self {
            settings: settings.clone(),
            creates: Arc::downgrade(creates),
            reads: Mutex::default(),
            connection: AsyncMutex::default(),
            table: AtomicU32::default(),
        }
    }

    /// Adds the reads of a worker to the check.
    pub(crate) fn add_reads(&self, reads: &Arc<Reads>) {
        let mut workers = self.workers();
        workers.retain(|worker| worker.strong_count() > 0);
        workers.push(Arc::downgrade(reads));
    }

    fn workers(&self) -> MutexGuard<'_, Vec<Weak<Reads>>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Probes the server, and opens a connection if a worker has none for reads.
    async fn probe_all(&self) -> Result<bool, ConnectionError> {
        let is_read_only = self.probe().await?;
        let are_connected = self
            .workers()
            .iter()
            .filter_map(Weak::upgrade)
            .all(|reads| reads.are_connected());
        if !are_connected {
            self.settings.connect().await?;
        }
        Ok(is_read_only)
    }

    async fn probe(&self) -> Result<bool, ConnectionError> {
        let mut kept = self.connection.lock().await;
        let connection = match kept.take() {
            Some(connection) if !connection.client.is_closed() => connection,
            _ => self.settings.connect().await?,
        };
        let client = &connection.client;
        let settings = self.settings.postgres.set_statements("SET LOCAL");
        client.batch_execute(&format!("BEGIN; {settings}")).await?;
        let row = client.query_typed_one(PROBE, &[]).await?;
        let is_read_only: bool = row.try_get(0)?;
        let table: u32 = row.try_get(1)?;
        client.batch_execute("COMMIT").await?;
        let known = self.table.swap(table, Ordering::Relaxed);
        if known != 0 && known != table {
            tracing::warn!("the table of pets was replaced, as a restore does");
        }
        // After a fail-over, another server accepts writes.
        if is_read_only {
            self.settings.demoted.send_replace(());
        } else {
            *kept = Some(connection);
        }
        Ok(is_read_only)
    }

    /// Probes the server in each interval if no connection reports that it has become read-only: behind a pooler, and
    /// before PostgreSQL 14.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            sleep(self.settings.postgres.probe_interval).await;
            if self.settings.must_probe.load(Ordering::Relaxed) {
                // A failure is reported by the connections of requests.
                let _ = within(self.settings.postgres.timeout, self.probe()).await;
            }
        }
    }
}

#[async_trait]
impl Readiness for PgReadiness {
    async fn check(&self) -> Result<(), Cause> {
        if !self
            .creates
            .upgrade()
            .is_some_and(|creates| creates.is_connected())
        {
            return Err("there is no connection to PostgreSQL".into());
        }
        match within(self.settings.postgres.timeout, self.probe_all()).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(READ_ONLY.into()),
            Err(error) => Err(self.settings.endpoint.locate(error).into()),
        }
    }
}
