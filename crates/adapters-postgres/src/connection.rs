//! Opening connections.
//!
//! **Problem.** A connection leads to one of several hosts, with or without encryption, and its URL has secrets.
//!
//! **Invariant.** Hosts are tried in order, each within its share of the timeout. `sslmode` and `sslrootcert` mean what
//! they mean in libpq. No secret of a URL is ever shown. `batching` keeps connections up.
//!
//! **Proof.** `tests/postgres/encryption.rs` runs every `sslmode` against servers, `hosts.rs` several hosts;
//! `endpoint/tests.rs` needs no server.

mod endpoint;
mod task;
mod tls;
mod within;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use animal_store_adapter_kit::{Outage, Panics};
use tokio::sync::watch;

pub use endpoint::{PgEndpoint, PgEndpointError};
pub(crate) use task::{Commits, ConnectionTask, OpenConnection};
pub(crate) use within::within;

use crate::{PostgresSettings, error::ConnectionError, metrics::Metrics, settings::NO_TIMEOUTS};

/// At a higher level, PostgreSQL refuses a create that waited for the record of another process, because the record is
/// newer than the snapshot of the create.
const READ_COMMITTED: &str = "SET default_transaction_isolation = 'read committed'";

/// Settings and shared state of the connections of a process.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) postgres: PostgresSettings,
    /// Each reason is logged once for all connections.
    pub(crate) outage: Outage,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether the schema can be used. No dispatcher connects before it can.
    pub(crate) schema_ready: watch::Receiver<bool>,
    /// Changes when a connection finds its server read-only: a fail-over may have left others on that server.
    pub(crate) demoted: watch::Sender<()>,
    /// Whether a connection does not report that its server has become read-only.
    pub(crate) must_probe: Arc<AtomicBool>,
    /// Notes a panic of a task, such as a dispatcher, without which requests would get 503 until the process ends.
    pub(crate) panics: Panics,
}

impl ConnectionSettings {
    /// Creates the settings of connections of which none is open.
    pub(crate) fn new(
        endpoint: PgEndpoint,
        postgres: PostgresSettings,
        metrics: Metrics,
        schema_ready: watch::Receiver<bool>,
    ) -> Self {
        Self {
            endpoint,
            postgres,
            outage: Outage::default(),
            metrics: Arc::new(metrics),
            schema_ready,
            demoted: watch::Sender::default(),
            must_probe: Arc::default(),
            panics: Panics::default(),
        }
    }

    /// Opens a connection within the connect timeout, and within the same timeout makes the settings of its
    /// transactions, unless a pooler assigns a server connection to each transaction.
    pub(crate) async fn connect(&self) -> Result<OpenConnection, ConnectionError> {
        let postgres = &self.postgres;
        let opened = self.endpoint.connect(postgres.connect_timeout).await?;
        if !postgres.transaction_pooling {
            let set = postgres.set_statements("SET");
            let set = format!("{NO_TIMEOUTS}; {READ_COMMITTED}; {set}");
            self.within(opened.client.batch_execute(&set)).await?;
        }
        if postgres.transaction_pooling || !opened.task.reports_role {
            self.must_probe.store(true, Ordering::Relaxed);
        }
        Ok(opened)
    }

    /// Waits within the connect timeout until a connection is prepared. An error has user, hosts and database.
    pub(crate) async fn within<T, E: Into<ConnectionError>>(
        &self,
        prepared: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ConnectionError> {
        let limit = self.postgres.connect_timeout;
        self.endpoint.within(limit, prepared).await
    }
}
