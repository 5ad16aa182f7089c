use animal_store_app::ports::StoreFailure;
use animal_store_domain::Pet;
use diesel::{QueryResult, connection::CacheSize, result::Error::DeserializationError};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use tokio_postgres::Client;

use super::read::{Pets, Read, load};
use crate::{
    PostgresSettings,
    batching::{Extent, Failure, Session},
    connection::ConnectionSettings,
    error::{ConnectionError, within},
};

/// A connection for reads.
pub(crate) struct ReadSession {
    connection: AsyncPgConnection,
    /// Behind a pooler, each batch is a transaction: the statements that begin it.
    begin: Option<String>,
}

impl Session for ReadSession {
    type Request = Read;
    type Response = Vec<Pet>;

    const PURPOSE: &'static str = "reads";
    /// PostgreSQL executes such a batch in about a millisecond. A larger one costs as much per row.
    const MAX_ROWS: usize = 500;
    const CHANGES_PETS: bool = false;

    async fn prepare(client: Client, settings: &PostgresSettings) -> Result<Self, ConnectionError> {
        if !settings.transaction_pooling {
            return Ok(Self { connection: AsyncPgConnection::try_from(client).await?, begin: None });
        }
        // Diesel first prepares its own statements: the transaction keeps them on one server connection.
        client.batch_execute("BEGIN").await?;
        let mut connection = AsyncPgConnection::try_from(client).await?;
        connection.batch_execute("COMMIT").await?;
        connection.set_prepared_statement_cache_size(CacheSize::Disabled);
        let begin = format!("BEGIN READ ONLY; {}", settings.set_statements("SET LOCAL"));
        Ok(Self { connection, begin: Some(begin) })
    }

    async fn execute(
        &mut self,
        reads: &[&Read],
        settings: &ConnectionSettings,
    ) -> Result<Vec<Result<Vec<Pet>, StoreFailure>>, Failure> {
        let unfinished = Extent::Connection("the connection could not begin or end a transaction");
        let loaded = within(settings.postgres.timeout, self.load(reads)).await;
        match loaded.map_err(|error| Failure::unchanged(error, unfinished, settings))? {
            Ok(pets) => Ok(pets.into_iter().map(|pets| Ok(pets?)).collect()),
            Err(DeserializationError(cause)) => {
                Err(Failure { error: StoreFailure::Corrupt, reason: cause.to_string(), extent: Extent::Request })
            }
            // Diesel hides the SQLSTATE. No statement of a read computes with values, so no error is about a row.
            Err(error) => Err(Failure::unchanged(error.into(), Extent::Batch, settings)),
        }
    }
}

impl ReadSession {
    /// Loads a batch. The outer error is that of its transaction, after which the state of the connection is unknown.
    async fn load(&mut self, reads: &[&Read]) -> QueryResult<QueryResult<Vec<Pets>>> {
        let Some(begin) = &self.begin else { return Ok(load(reads, &mut self.connection).await) };
        self.connection.batch_execute(begin).await?;
        let loaded = load(reads, &mut self.connection).await;
        self.connection.batch_execute("COMMIT").await?;
        Ok(loaded)
    }
}
