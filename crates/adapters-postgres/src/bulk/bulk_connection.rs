use std::{pin::pin, time::Duration};

use animal_store_app::ports::BulkStorageError;
use tokio::time::timeout;
use tokio_postgres::{
    Client, Row,
    binary_copy::BinaryCopyInWriter,
    error::SqlState,
    types::{ToSql, Type},
};

use crate::{
    PgEndpoint, PostgresSettings,
    connection::ConnectionTask,
    error::{ConnectionError, refusal},
    pet_row::NewPetRow,
};

/// A parameter of a statement.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection of a command. No prepared statement and no setting outlives its transaction, so it works through any
/// pooler. After an error it must not be used again: its transaction may be open.
pub(super) struct BulkConnection {
    client: Client,
    _task: ConnectionTask,
    endpoint: PgEndpoint,
    settings: String,
    timeout: Duration,
}

impl BulkConnection {
    pub(super) async fn open(endpoint: &PgEndpoint, settings: &PostgresSettings) -> Result<Self, BulkStorageError> {
        let opened = endpoint.connect(settings.connect_timeout).await;
        let (client, task) = opened.map_err(|error| BulkStorageError::Unavailable(error.into()))?;
        let (endpoint, timeout) = (endpoint.clone(), settings.timeout);
        Ok(Self { client, _task: task, endpoint, settings: settings.set_statements("SET LOCAL"), timeout })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Begins a transaction for writes. At a higher isolation level, PostgreSQL refuses a statement that waited for
    /// another transaction.
    pub(super) async fn begin(&self) -> Result<(), BulkStorageError> {
        self.execute(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {}", self.settings), "").await
    }

    /// Begins a transaction that sees what is committed now, and that no timeout of PostgreSQL ends between two
    /// statements. The last statement takes the snapshot; `transaction_timeout` exists since PostgreSQL 17.
    pub(super) async fn begin_snapshot(&self) -> Result<(), BulkStorageError> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {};
            SET LOCAL idle_in_transaction_session_timeout = 0;
            SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'",
            self.settings
        );
        self.execute(&begin, "").await
    }

    /// Runs several statements in one message. If a privilege is missing, the error has `needed`.
    pub(super) async fn execute(&self, sql: &str, needed: &str) -> Result<(), BulkStorageError> {
        self.within_timeout(self.client.batch_execute(sql), needed).await
    }

    /// Runs a statement. If a privilege is missing, the error has `needed`.
    pub(super) async fn query(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
        needed: &str,
    ) -> Result<Vec<Row>, BulkStorageError> {
        self.within_timeout(self.client.query_typed(sql, parameters), needed).await
    }

    /// Runs `COPY … FROM STDIN (FORMAT binary)` with these rows. Returns the number of rows that were stored. If a
    /// privilege is missing, the error has `needed`.
    pub(super) async fn copy_in(
        &self,
        sql: &str,
        types: &[Type],
        rows: impl Iterator<Item = NewPetRow<'_>> + Send,
        needed: &str,
    ) -> Result<u64, BulkStorageError> {
        let copy = async {
            let mut writer = pin!(BinaryCopyInWriter::new(self.client.copy_in(sql).await?, types));
            for row in rows {
                writer.as_mut().write(&row.values()).await?;
            }
            writer.finish().await
        };
        self.within_timeout(copy, needed).await
    }

    /// Ends a transaction. Only an error that PostgreSQL sends before the commit means that nothing was written.
    pub(super) async fn commit(&self) -> Result<(), BulkStorageError> {
        let response = timeout(self.timeout, self.client.batch_execute("COMMIT")).await;
        let error = match response {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if refusal(&error).is_some() => return Err(self.unavailable(error)),
            Ok(Err(error)) => error.into(),
            Err(_) => ConnectionError::NoResponse,
        };
        Err(BulkStorageError::OutcomeUnknown(self.endpoint.locate(error).into()))
    }

    pub(super) fn unavailable(&self, error: impl Into<ConnectionError>) -> BulkStorageError {
        BulkStorageError::Unavailable(self.endpoint.locate(error).into())
    }

    async fn within_timeout<T>(
        &self,
        response: impl Future<Output = Result<T, tokio_postgres::Error>>,
        needed: &str,
    ) -> Result<T, BulkStorageError> {
        let response = timeout(self.timeout, response).await;
        response.map_err(|_| self.unavailable(ConnectionError::NoResponse))?.map_err(|error| {
            let denied = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
            let error = self.endpoint.locate(error);
            let cause = if denied { format!("{error}; the user needs {needed}").into() } else { error.into() };
            BulkStorageError::Unavailable(cause)
        })
    }
}
