//! Opens a connection and prepares it for its purpose.

use std::sync::Arc;

use tokio::{
    sync::{MutexGuard, watch},
    time::timeout,
};
use tokio_postgres::Client;

use super::{
    endpoint::{ConnectionTask, PgEndpoint},
    retry::OutageLog,
};
use crate::{PostgresSettings, error::ConnectionError, metrics::Metrics};

/// A connection that is prepared for its purpose.
pub(crate) trait Session: Sized + Send + Sync + 'static {
    fn prepare(
        client: Client,
        settings: &PostgresSettings,
    ) -> impl Future<Output = Result<Self, ConnectionError>> + Send;

    /// Waits until the session can execute a batch. It executes no other batch until the guard is dropped.
    fn turn(&self) -> impl Future<Output = Option<MutexGuard<'_, ()>>> + Send {
        async { None }
    }
}

impl Session for Client {
    async fn prepare(client: Client, _: &PostgresSettings) -> Result<Self, ConnectionError> {
        Ok(client)
    }
}

/// Settings and shared state of the connections of a process.
#[derive(Clone)]
pub(crate) struct ConnectionSettings {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) postgres: PostgresSettings,
    pub(crate) outages: Arc<OutageLog>,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether the schema can be used. No supervisor connects before it can.
    pub(crate) schema_ready: watch::Receiver<bool>,
}

impl ConnectionSettings {
    /// Opens a connection within the connect timeout, and prepares it within the same timeout.
    pub(crate) async fn open<S: Session>(&self) -> Result<(S, ConnectionTask), ConnectionError> {
        let connect_timeout = self.postgres.connect_timeout;
        let (client, task) = self.endpoint.connect(connect_timeout).await?;
        let preparing = async {
            if !self.postgres.transaction_pooling {
                client.batch_execute(&self.postgres.set_statements("SET")).await?;
            }
            S::prepare(client, &self.postgres).await
        };
        let session = timeout(connect_timeout, preparing).await.unwrap_or(Err(ConnectionError::NoResponse));
        Ok((session.map_err(|error| self.endpoint.locate(error))?, task))
    }
}
