//! Transactions of commands and of background tasks, each on a connection of its own.

use std::{iter::zip, time::Duration};

use animal_store_app::ports::{StoreFailure, StoreResult};
use tokio_postgres::{
    Row,
    types::{FromSql, ToSql, Type},
};

use crate::{
    PgEndpoint, PostgresSettings,
    checks::texts,
    connection::{ConnectionSettings, OpenConnection},
    error::{ConnectionError, invalid_row},
    pet_row::Array,
};

/// A parameter of a statement.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The primary of a database, for a command or a background task.
#[derive(Clone)]
pub struct Database {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) settings: PostgresSettings,
}

/// A connection for one transaction at a time, which ends without a commit when this is dropped. Nothing is prepared,
/// and no setting outlives the transaction, so it works through any pooler.
pub(crate) struct TransactionConnection {
    open: OpenConnection,
    database: Database,
}

impl Database {
    /// The database of the connections of requests.
    pub(crate) fn of(connections: &ConnectionSettings) -> Self {
        Self {
            endpoint: connections.endpoint.clone(),
            settings: connections.postgres.clone(),
        }
    }

    pub(crate) fn new(endpoint: PgEndpoint, settings: PostgresSettings) -> Self {
        Self {
            endpoint: endpoint.of_primary(settings.transaction_pooling),
            settings,
        }
    }

    pub(crate) async fn connect(&self) -> StoreResult<TransactionConnection> {
        let limit = self.settings.connect_timeout;
        Ok(TransactionConnection {
            open: self.endpoint.connect(limit).await?,
            database: self.clone(),
        })
    }
}

impl TransactionConnection {
    /// Begins a transaction with these statements. At a higher isolation level, PostgreSQL refuses a write that waited
    /// for another transaction.
    pub(crate) async fn begin(&self, statements: &str) -> StoreResult<()> {
        let settings = self.database.settings.set_statements("SET LOCAL");
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {settings}; {statements}");
        self.run(&begin).await
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.open.client.is_closed()
    }

    /// Runs statements that return nothing.
    pub(crate) async fn run(&self, statements: &str) -> StoreResult<()> {
        self.within_timeout(self.open.client.batch_execute(statements))
            .await
    }

    pub(crate) async fn query(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> StoreResult<Vec<Row>> {
        self.query_within(self.database.settings.timeout, sql, parameters)
            .await
    }

    pub(crate) async fn query_within(
        &self,
        timeout: Duration,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> StoreResult<Vec<Row>> {
        let rows = self.open.client.query_typed(sql, parameters);
        Ok(self.database.endpoint.within(timeout, rows).await?)
    }

    /// Returns the only row of a result.
    pub(crate) async fn query_one(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> StoreResult<Row> {
        self.within_timeout(self.open.client.query_typed_one(sql, parameters))
            .await
    }

    /// Fails with this description if a query of [`checks`](crate::checks) finds problems.
    pub(crate) async fn check(&self, query: &str, description: &str) -> StoreResult<()> {
        let problems = self.within_timeout(texts(&self.open.client, query)).await?;
        if problems.is_empty() {
            return Ok(());
        }
        let problems = problems.join("; ");
        Err(self.refused(&format!("{description}{problems}")))
    }

    /// Runs a statement on the values of these columns. Returns the number of rows that it wrote.
    pub(crate) async fn write(
        &self,
        sql: &str,
        columns: &[(&str, Type)],
        values: &[Array<'_>],
    ) -> Result<u64, ConnectionError> {
        let mut parameters: Vec<Parameter<'_>> = Vec::new();
        for (values, (_, array)) in zip(values, columns) {
            parameters.push((&**values, array.clone()));
        }
        let Database { endpoint, settings } = &self.database;
        let written = self.open.client.execute_typed(sql, &parameters);
        endpoint.within(settings.timeout, written).await
    }

    /// Ends the transaction. Only an error that PostgreSQL sends before the commit means that nothing was written.
    pub(crate) async fn commit(&self) -> StoreResult<()> {
        let Database { endpoint, settings } = &self.database;
        let commits = self.open.task.commits();
        let commit = self.open.client.batch_execute("COMMIT");
        let Err(error) = commits.within(settings.timeout, commit).await else {
            return Ok(());
        };
        let is_refused = error.refusal().is_some();
        let cause = endpoint.locate(error).into();
        if is_refused {
            return Err(StoreFailure::Unavailable(cause));
        }
        // A commit that waits for a standby would keep its locks: no key could be changed.
        let token = self.open.client.cancel_token();
        endpoint.cancel(token, settings.timeout).await;
        Err(StoreFailure::OutcomeUnknown(cause))
    }

    /// The error of a call that this adapter refuses.
    pub(crate) fn refused(&self, reason: &str) -> StoreFailure {
        StoreFailure::Unavailable(format!("{}: {reason}", self.database.endpoint.login()).into())
    }

    async fn within_timeout<T, E: Into<ConnectionError>>(
        &self,
        response: impl Future<Output = Result<T, E>>,
    ) -> StoreResult<T> {
        let Database { endpoint, settings } = &self.database;
        Ok(endpoint.within(settings.timeout, response).await?)
    }
}

pub(crate) fn parse<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> StoreResult<T> {
    row.try_get(column).map_err(invalid_row)
}
