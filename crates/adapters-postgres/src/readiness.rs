use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use animal_store_adapter_kit::queue::Request;
use animal_store_app::ports::{Cause, Readiness, StoreFailure};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio_postgres::Client;

use crate::{
    PostgresSettings,
    batching::{Batcher, Extent, Failure, READ_ONLY, Session, batching},
    connection::ConnectionSettings,
    creates::Creates,
    error::{ConnectionError, within},
    metrics::KindMetrics,
};

/// Reads the table, and checks that it can be written. The statement is not prepared, so it works through any pooler.
const PROBE: &str = "SELECT current_setting('transaction_read_only') = 'on', EXISTS (SELECT FROM pets)";

/// Probes in a batch share a response. More than wait at once are refused.
const MAX_PROBES: usize = 1000;

/// Probe of PostgreSQL: ready if pets can be read and added.
pub(crate) struct PgReadiness {
    probes: Batcher<Probe>,
    /// Does not keep the dispatchers of creates running.
    creates: Weak<Creates>,
    timeout: Duration,
}

pub(crate) struct Probe;

/// A connection for probes.
struct ProbeSession(Client);

impl PgReadiness {
    /// Starts its dispatcher on the current runtime.
    pub(crate) fn start(settings: &ConnectionSettings, creates: &Arc<Creates>) -> Self {
        let [metrics] = KindMetrics::of(["probe"], &mut Registry::default());
        let connections = &settings.metrics.readiness_connections;
        let ([probes], _) = batching::<ProbeSession, 1>(settings, [&metrics], MAX_PROBES, connections, 1);
        Self { probes, creates: Arc::downgrade(creates), timeout: settings.postgres.timeout }
    }
}

#[async_trait]
impl Readiness for PgReadiness {
    async fn check(&self) -> Result<(), Cause> {
        let stopped = || Err(StoreFailure::Unavailable("the storage has stopped".into()));
        let connected = self.creates.upgrade().map_or_else(stopped, |creates| creates.check_connected());
        let probed = match connected {
            Ok(()) => self.probes.send(Probe, self.timeout).await,
            Err(failure) => Err(failure),
        };
        probed.map_err(|failure| match failure {
            StoreFailure::Unavailable(cause) => cause,
            failure => failure.into(),
        })
    }
}

impl Request for Probe {
    type Response = Result<(), StoreFailure>;
}

impl Session for ProbeSession {
    type Request = Probe;
    type Response = ();

    const PURPOSE: &'static str = "readiness";
    const MAX_ROWS: usize = MAX_PROBES;
    const CHANGES_PETS: bool = false;

    async fn prepare(client: Client, _: &PostgresSettings) -> Result<Self, ConnectionError> {
        Ok(Self(client))
    }

    async fn execute(
        &mut self,
        probes: &[&Probe],
        settings: &ConnectionSettings,
    ) -> Result<Vec<Result<(), StoreFailure>>, Failure> {
        let response = within(settings.postgres.timeout, self.0.query_typed_one(PROBE, &[])).await;
        let is_read_only: Result<bool, _> = response.and_then(|row| Ok(row.try_get(0)?));
        if is_read_only.map_err(|error| Failure::of_read(error, Extent::Batch, settings))? {
            let reason = "PostgreSQL is read-only".to_owned();
            return Err(Failure { error: StoreFailure::Unavailable, reason, extent: Extent::Connection(READ_ONLY) });
        }
        Ok(probes.iter().map(|_| Ok(())).collect())
    }
}
