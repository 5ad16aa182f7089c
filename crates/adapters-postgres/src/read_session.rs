//! Reads on a connection.

use std::{sync::Arc, time::Duration};

use diesel::{QueryResult, connection::CacheSize};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};
use tokio_postgres::Client;

use animal_store_app::ports::StorageError;

use crate::{
    PostgresSettings,
    error::{self, ConnectionError},
    link::{LATE, Open, Session},
    pet_query::PetQuery,
    pet_row::PetRow,
};

/// A connection that reads.
pub(crate) struct ReadSession {
    connection: AsyncPgConnection,
    /// For a pooler, one transaction follows another; otherwise nobody waits for anybody.
    turns: Option<Turns>,
}

struct Turns {
    turn: Arc<Mutex<()>>,
    begin: String,
}

impl Session for ReadSession {
    const PURPOSE: &'static str = "reads";

    type Settings = PostgresSettings;

    async fn begin(client: Client, settings: &PostgresSettings) -> Result<Self, ConnectionError> {
        if !settings.transaction_pooling {
            return Ok(Self { connection: AsyncPgConnection::try_from(client).await?, turns: None });
        }
        // Diesel's own first statements are prepared: the transaction keeps them on one connection of the server.
        client.batch_execute("BEGIN").await?;
        let mut connection = AsyncPgConnection::try_from(client).await?;
        connection.batch_execute("COMMIT").await?;
        connection.set_prepared_statement_cache_size(CacheSize::Disabled);
        let begin = format!("BEGIN READ ONLY; {}", settings.statements("SET LOCAL"));
        Ok(Self { connection, turns: Some(Turns { turn: Arc::default(), begin }) })
    }
}

impl Open<ReadSession> {
    /// The answer to a question, within this time. A connection that does not answer by then is given up. Where reads
    /// take turns, one may wait as long again for its own, which says nothing about the connection.
    pub(crate) async fn ask(self: Arc<Self>, query: PetQuery, patience: Duration) -> Result<Vec<PetRow>, StorageError> {
        let answer = match &self.session.turns {
            None => timeout(patience, query.load(&self.session.connection)).await,
            Some(turns) => {
                let turn = timeout(patience, Arc::clone(&turns.turn).lock_owned()).await;
                let turn = turn.map_err(|_| StorageError::Timeout)?;
                timeout(patience, Arc::clone(&self).in_transaction(turns.begin.clone(), query, turn)).await
            }
        };
        if let Ok(rows) = answer {
            return rows.map_err(error::of_read);
        }
        self.give_up(LATE);
        Err(StorageError::Timeout)
    }

    /// Once begun, it goes on when the request that asked has gone: nobody else would end it.
    async fn in_transaction(
        self: Arc<Self>,
        begin: String,
        query: PetQuery,
        turn: OwnedMutexGuard<()>,
    ) -> QueryResult<Vec<PetRow>> {
        let transaction = async move {
            let _turn = turn;
            let mut connection = &self.session.connection;
            // Whatever state these leave the connection in, it is not the one that the next transaction needs.
            let stuck = |_: &_| self.give_up("it could not begin or end a transaction");
            connection.batch_execute(&begin).await.inspect_err(stuck)?;
            let rows = query.load(connection).await;
            connection.batch_execute("COMMIT").await.inspect_err(stuck)?;
            rows
        };
        tokio::spawn(transaction).await.unwrap_or(Err(diesel::result::Error::BrokenTransactionManager))
    }
}

#[cfg(test)]
mod tests;
