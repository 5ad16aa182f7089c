use std::time::Duration;

use animal_store_app::Finding;
use tokio::time::timeout;
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use crate::{
    PgEndpoint, PostgresSettings,
    connection::{ConnectionTask, application_name},
    error::ConnectionError,
};

/// The findings of a step, or the error because of which it has none.
pub(super) type Inspected = Result<Vec<Finding>, ConnectionError>;

/// A connection for a diagnosis. Its statements are not prepared, so they work through any pooler.
pub(super) struct Inspection {
    client: Client,
    _task: ConnectionTask,
    timeout: Duration,
}

impl Inspection {
    pub(super) async fn open(endpoint: &PgEndpoint, settings: &PostgresSettings) -> Result<Self, ConnectionError> {
        let endpoint = endpoint.clone().with_application_name(&application_name(settings.transaction_pooling));
        let (client, task) = endpoint.connect(settings.connect_timeout).await?;
        Ok(Self { client, _task: task, timeout: settings.timeout })
    }

    pub(super) async fn rows(&self, sql: &str) -> Result<Vec<Row>, ConnectionError> {
        self.within_timeout(self.client.query_typed(sql, &[])).await
    }

    pub(super) async fn row(&self, sql: &str) -> Result<Row, ConnectionError> {
        self.within_timeout(self.client.query_typed_one(sql, &[])).await
    }

    /// Runs several statements in one message. Returns the first column of all rows.
    pub(super) async fn lines(&self, sql: &str) -> Result<Vec<String>, ConnectionError> {
        let messages = self.within_timeout(self.client.simple_query(sql)).await?;
        let line = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        Ok(messages.iter().filter_map(line).collect())
    }

    /// Returns whether no further statement can be executed after this error.
    pub(super) fn is_lost(&self, error: &ConnectionError) -> bool {
        self.client.is_closed() || matches!(error, ConnectionError::NoResponse)
    }

    async fn within_timeout<T>(
        &self,
        response: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ConnectionError> {
        Ok(timeout(self.timeout, response).await.map_err(|_| ConnectionError::NoResponse)??)
    }
}
