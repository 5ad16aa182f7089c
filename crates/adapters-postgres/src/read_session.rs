//! Reads on a connection.

use std::{sync::Arc, time::Duration};

use diesel::{QueryResult, connection::CacheSize};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use tokio::{sync::Mutex, time::timeout};
use tokio_postgres::Client;

use animal_store_app::ports::StorageError;

use crate::{
    PgSettings,
    error::{self, ConnectionError},
    link::{Open, Session},
    pet_query::PetQuery,
    pet_row::PetRow,
};

/// Settings of the server that make every plan of `pet_query.rs` a walk along an index, whatever the table looks like
/// when it is made: on a small one, reading it whole looks cheaper, and the plan would stay.
pub(crate) const PLANS: [&str; 4] =
    ["plan_cache_mode=force_generic_plan", "enable_seqscan=off", "enable_bitmapscan=off", "enable_sort=off"];

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

    type Settings = PgSettings;

    async fn begin(client: Client, settings: &PgSettings) -> Result<Self, ConnectionError> {
        if !settings.transaction_pooling {
            return Ok(Self { connection: AsyncPgConnection::try_from(client).await?, turns: None });
        }
        // Diesel's own first statements are prepared: the transaction keeps them on one connection of the server.
        client.batch_execute("BEGIN").await?;
        let mut connection = AsyncPgConnection::try_from(client).await?;
        connection.batch_execute("COMMIT").await?;
        connection.set_prepared_statement_cache_size(CacheSize::Disabled);
        let plans = PLANS.map(|setting| format!("; SET LOCAL {setting}")).concat();
        let timeout = settings.statement_timeout();
        let begin = format!("BEGIN READ ONLY; SET LOCAL statement_timeout = {timeout}{plans}");
        Ok(Self { connection, turns: Some(Turns { turn: Arc::default(), begin }) })
    }
}

impl Open<ReadSession> {
    /// The answer to a question, within this time. A connection that does not answer by then is given up.
    pub(crate) async fn ask(self: Arc<Self>, query: PetQuery, patience: Duration) -> Result<Vec<PetRow>, StorageError> {
        let answer = if self.session.turns.is_some() {
            timeout(patience, in_turn(Arc::clone(&self), query)).await
        } else {
            timeout(patience, query.load(&self.session.connection)).await
        };
        if let Ok(rows) = answer {
            return rows.map_err(error::of_read);
        }
        self.give_up();
        Err(StorageError::Deadline)
    }
}

/// In a transaction of its own. Once begun, it goes on when the request that asked has gone: nobody else would end it.
async fn in_turn(open: Arc<Open<ReadSession>>, query: PetQuery) -> QueryResult<Vec<PetRow>> {
    let Some(turns) = &open.session.turns else { return query.load(&open.session.connection).await };
    let turn = Arc::clone(&turns.turn).lock_owned().await;
    let begin = turns.begin.clone();
    let transaction = async move {
        let _turn = turn;
        let connection = &open.session.connection;
        let mut shared = connection;
        shared.batch_execute(&begin).await?;
        let rows = query.load(connection).await;
        shared.batch_execute("COMMIT").await?;
        rows
    };
    tokio::spawn(transaction).await.unwrap_or(Err(diesel::result::Error::RollbackTransaction))
}

#[cfg(test)]
mod tests;
