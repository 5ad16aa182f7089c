//! Transactions of commands and of background tasks, each on a connection of its own.

use std::time::Duration;

use animal_store_app::ports::{Cause, StoreFailure};
use tokio_postgres::{
    Client, Row,
    types::{FromSql, ToSql, Type},
};

use crate::{
    PgEndpoint, PostgresSettings,
    checks::texts,
    connection::{ConnectionSettings, ConnectionTask},
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
    client: Client,
    task: ConnectionTask,
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
        let is_pooling = settings.transaction_pooling;
        Self {
            endpoint: endpoint.named(is_pooling).of_primary(is_pooling),
            settings,
        }
    }

    pub(crate) async fn connect(&self) -> Result<TransactionConnection, StoreFailure> {
        let limit = self.settings.connect_timeout;
        let (client, task) = self.endpoint.connect(limit).await?;
        Ok(TransactionConnection {
            client,
            task,
            database: self.clone(),
        })
    }
}

impl TransactionConnection {
    /// Begins a transaction with these statements. At a higher isolation level, PostgreSQL refuses a write that waited
    /// for another transaction.
    pub(crate) async fn begin(&self, statements: &str) -> Result<(), StoreFailure> {
        let settings = self.database.settings.set_statements("SET LOCAL");
        let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; {settings}; {statements}");
        self.run(&begin).await
    }

    /// Runs statements that return nothing.
    pub(crate) async fn run(&self, statements: &str) -> Result<(), StoreFailure> {
        self.within_timeout(self.client.batch_execute(statements))
            .await
    }

    pub(crate) async fn query(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreFailure> {
        self.query_within(self.database.settings.timeout, sql, parameters)
            .await
    }

    pub(crate) async fn query_within(
        &self,
        timeout: Duration,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreFailure> {
        let rows = self.client.query_typed(sql, parameters);
        Ok(self.database.endpoint.within(timeout, rows).await?)
    }

    /// Returns the only row of a result.
    pub(crate) async fn query_one(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, StoreFailure> {
        self.within_timeout(self.client.query_typed_one(sql, parameters))
            .await
    }

    /// Fails with this description if a query of [`checks`](crate::checks) finds problems.
    pub(crate) async fn check(&self, query: &str, description: &str) -> Result<(), StoreFailure> {
        match &*self.within_timeout(texts(&self.client, query)).await? {
            [] => Ok(()),
            problems => Err(self.refused(&format!("{description}{}", problems.join("; ")))),
        }
    }

    /// Runs a statement on the values of these columns. Returns the number of rows that it wrote.
    pub(crate) async fn write(
        &self,
        sql: &str,
        columns: &[(&str, Type)],
        values: &[Array<'_>],
    ) -> Result<u64, ConnectionError> {
        let values = values.iter().map(|array| &**array as &(dyn ToSql + Sync));
        let parameters: Vec<_> = values
            .zip(columns.iter().map(|(_, array)| array.clone()))
            .collect();
        let Database { endpoint, settings } = &self.database;
        let written = self.client.execute_typed(sql, &parameters);
        endpoint.within(settings.timeout, written).await
    }

    /// Ends the transaction. Only an error that PostgreSQL sends before the commit means that nothing was written.
    pub(crate) async fn commit(&self) -> Result<(), StoreFailure> {
        let commit = self.client.batch_execute("COMMIT");
        self.task
            .commits()
            .within(self.database.settings.timeout, commit)
            .await
            .map_err(|error| {
                let failure = if error.refusal().is_some() {
                    StoreFailure::Unavailable
                } else {
                    StoreFailure::OutcomeUnknown
                };
                failure(self.database.endpoint.locate(error).into())
            })
    }

    /// The error of a call that this adapter refuses.
    pub(crate) fn refused(&self, reason: &str) -> StoreFailure {
        StoreFailure::Unavailable(format!("{}: {reason}", self.database.endpoint.login()).into())
    }

    async fn within_timeout<T, E: Into<ConnectionError>>(
        &self,
        response: impl Future<Output = Result<T, E>>,
    ) -> Result<T, StoreFailure> {
        let Database { endpoint, settings } = &self.database;
        Ok(endpoint.within(settings.timeout, response).await?)
    }
}

pub(crate) fn corrupt(reason: impl Into<Cause>) -> StoreFailure {
    StoreFailure::Corrupt(reason.into())
}

pub(crate) fn parse<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreFailure> {
    row.try_get(column).map_err(invalid_row)
}
