use std::sync::Arc;

use animal_store_app::ports::StorageError;
use diesel::{QueryResult, connection::CacheSize};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};
use tokio_postgres::Client;

use super::query::PetQuery;
use crate::{
    PgEndpoint, PostgresSettings,
    connection::{Connection, ConnectionSettings, NO_RESPONSE, Session},
    error::ConnectionError,
    pet_row::PetRow,
};

pub(super) struct ReadSession {
    connection: AsyncPgConnection,
    /// Behind a pooler: the lock that a read holds during its transaction, and the statements that begin it. `None`:
    /// reads share the connection without a lock.
    transactions: Option<(Arc<Mutex<()>>, String)>,
}

impl Session for ReadSession {
    async fn prepare(client: Client, settings: &PostgresSettings) -> Result<Self, ConnectionError> {
        if !settings.transaction_pooling {
            return Ok(Self { connection: AsyncPgConnection::try_from(client).await?, transactions: None });
        }
        // Diesel first prepares its own statements: the transaction keeps them on one server connection.
        client.batch_execute("BEGIN").await?;
        let mut connection = AsyncPgConnection::try_from(client).await?;
        connection.batch_execute("COMMIT").await?;
        connection.set_prepared_statement_cache_size(CacheSize::Disabled);
        let begin = format!("BEGIN READ ONLY; {}", settings.set_statements("SET LOCAL"));
        Ok(Self { connection, transactions: Some((Arc::default(), begin)) })
    }
}

impl Connection<ReadSession> {
    /// Runs a query. If there is no response in time, marks the connection as broken. The wait for an earlier
    /// transaction has the same timeout, but does not mark the connection.
    pub(super) async fn load(
        self: Arc<Self>,
        query: PetQuery,
        settings: &ConnectionSettings,
    ) -> Result<Vec<PetRow>, StorageError> {
        let query_timeout = settings.postgres.timeout;
        let response = match &self.session.transactions {
            None => timeout(query_timeout, query.load(&self.session.connection)).await,
            Some((lock, begin)) => {
                let guard = timeout(query_timeout, Arc::clone(lock).lock_owned()).await;
                let guard = guard.map_err(|_| StorageError::Timeout)?;
                timeout(query_timeout, Arc::clone(&self).load_in_transaction(begin.clone(), query, guard)).await
            }
        };
        if let Ok(rows) = response {
            return rows.map_err(|error| read_error(error, &settings.endpoint));
        }
        self.mark_broken(NO_RESPONSE);
        Err(StorageError::Timeout)
    }

    /// Runs as a task, so that the transaction ends even if its request is dropped.
    async fn load_in_transaction(
        self: Arc<Self>,
        begin: String,
        query: PetQuery,
        guard: OwnedMutexGuard<()>,
    ) -> QueryResult<Vec<PetRow>> {
        let transaction = async move {
            let _guard = guard;
            let mut connection = &self.session.connection;
            // After such a failure, the state of the connection is unknown.
            let mark_broken = |_: &_| self.mark_broken("the connection could not begin or end a transaction");
            connection.batch_execute(&begin).await.inspect_err(mark_broken)?;
            let rows = query.load(connection).await;
            connection.batch_execute("COMMIT").await.inspect_err(mark_broken)?;
            rows
        };
        tokio::spawn(transaction).await.unwrap_or(Err(diesel::result::Error::BrokenTransactionManager))
    }
}

/// Converts the failure of a read, with the login of its connection.
fn read_error(error: diesel::result::Error, endpoint: &PgEndpoint) -> StorageError {
    match error {
        diesel::result::Error::DeserializationError(cause) => StorageError::Corrupt(cause),
        error => StorageError::Unavailable(endpoint.locate(error).to_string().into()),
    }
}
