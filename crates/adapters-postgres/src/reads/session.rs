use animal_store_app::ports::StoreFailure;
use diesel::{QueryResult, connection::CacheSize};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Client;

use super::read::Read;
use crate::{
    PostgresSettings,
    connection::{Connection, Session},
    error::ConnectionError,
};

/// A connection for reads. Batches of several kinds share it: each is sent before the responses to others arrive.
pub(crate) struct ReadSession {
    connection: AsyncPgConnection,
    /// Behind a pooler, each batch is a transaction: the statements that begin it, and the lock that it holds.
    transactions: Option<(String, Mutex<()>)>,
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
        Ok(Self { connection, transactions: Some((begin, Mutex::default())) })
    }

    async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let (_, lock) = self.transactions.as_ref()?;
        Some(lock.lock().await)
    }
}

impl Connection<ReadSession> {
    /// Loads a batch. If the future is dropped before it ends, the connection has to be marked as broken.
    pub(super) async fn load<R: Read>(&self, reads: &[&R]) -> QueryResult<Vec<Result<R::Response, StoreFailure>>> {
        let mut connection = &self.session.connection;
        let Some((begin, _)) = &self.session.transactions else { return R::load(reads, connection).await };
        // After such a failure, the state of the connection is unknown.
        let mark_broken = |_: &_| self.mark_broken("the connection could not begin or end a transaction");
        connection.batch_execute(begin).await.inspect_err(mark_broken)?;
        let loaded = R::load(reads, connection).await;
        connection.batch_execute("COMMIT").await.inspect_err(mark_broken)?;
        loaded
    }
}
