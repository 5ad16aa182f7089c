use std::{
    collections::HashMap,
    pin::{Pin, pin},
    time::Duration,
    vec,
};

use animal_store_app::ports::{StoreFailure, StoreResult};
use animal_store_domain::Pet;
use futures_util::{
    FutureExt,
    future::{MaybeDone, maybe_done},
};
use tokio::time::timeout;
use tokio_postgres::{Client, Error, Row};

use super::{
    query,
    read::{Kinds, Lists, Read},
};
use crate::{
    PostgresSettings,
    batching::{Affected, Connected, Executed, Failure, Lost, Session, SessionStatement, Value},
    connection::{ConnectionSettings, OpenConnection},
    error::{ConnectionError, invalid_row},
    pet_row::{pet, pets},
    purpose::Purpose,
};

/// The response to a read. An invalid row fails the reads that contain it, and no others.
type Pets = StoreResult<Vec<Pet>>;

/// The responses to the reads of one kind, in their order, unless their statement failed.
type Loaded<E> = Result<Vec<Pets>, E>;

/// A connection for reads. It does not use Diesel, which hides the SQLSTATEs that decide about the session.
pub(crate) struct ReadSession {
    client: Client,
    /// Behind a pooler, each statement is in a transaction: the statements that begin it.
    begin: Option<String>,
    gets: SessionStatement,
    list: SessionStatement,
    list_by_status: SessionStatement,
    lists: SessionStatement,
    lists_by_status: SessionStatement,
}

impl Session for ReadSession {
    type Request = Read;

    /// PostgreSQL executes such a batch in about a millisecond. A larger one costs as much per row.
    const MAX_ROWS: usize = 500;

    async fn open(
        _: Purpose,
        settings: &ConnectionSettings,
    ) -> Result<Connected<Self>, ConnectionError> {
        let OpenConnection { client, task } = settings.connect().await?;
        let prepare = Self::prepare(client, &settings.postgres);
        let session = settings.within(prepare).await?;
        Ok(Connected { session, task })
    }

    async fn execute(&mut self, reads: &[&Read], settings: &ConnectionSettings) -> Executed<Read> {
        let kinds = Kinds::of(reads);
        let limit = settings.postgres.timeout;
        let [gets, lists, lists_by_status] = self.load(&kinds, limit).await;
        let mut gets = self.responses(gets, kinds.gets.len(), settings);
        let mut lists = self.responses(lists, kinds.lists.len(), settings);
        let by_status = kinds.lists_by_status.len();
        let mut lists_by_status = self.responses(lists_by_status, by_status, settings);
        let in_order = reads.iter().map(|read| match read {
            Read::Get(_) => gets.next(),
            Read::List(_) => lists.next(),
            Read::ListByStatus(..) => lists_by_status.next(),
        });
        in_order.flatten().collect()
    }
}

impl ReadSession {
    async fn prepare(client: Client, settings: &PostgresSettings) -> Result<Self, Error> {
        let statement = |query| SessionStatement::new(&client, query, settings);
        let set = settings.set_statements("SET LOCAL");
        let begin = || format!("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; {set}");
        Ok(Self {
            begin: settings.transaction_pooling.then(begin),
            gets: statement(query::gets()).await?,
            list: statement(query::list()).await?,
            list_by_status: statement(query::list_by_status()).await?,
            lists: statement(query::lists()).await?,
            lists_by_status: statement(query::lists_by_status()).await?,
            client,
        })
    }

    /// Sends the statements of all kinds together. Behind a pooler, one follows another, because each is a transaction.
    /// PostgreSQL executes them in this order, so the wait for a response begins after the one before it.
    async fn load(&self, kinds: &Kinds, limit: Duration) -> [Loaded<ConnectionError>; 3] {
        let mut gets = pin!(maybe_done(self.load_gets(&kinds.gets)));
        let mut lists = pin!(maybe_done(self.load_lists(&kinds.lists)));
        let by_status = self.load_lists_by_status(&kinds.lists_by_status);
        let mut lists_by_status = pin!(maybe_done(by_status));
        if self.begin.is_none() {
            // The first poll sends a statement.
            let _ = gets.as_mut().now_or_never();
            let _ = lists.as_mut().now_or_never();
            let _ = lists_by_status.as_mut().now_or_never();
        }
        let mut timeout = ResponseTimeout(limit);
        [
            timeout.wait_for(gets).await,
            timeout.wait_for(lists).await,
            timeout.wait_for(lists_by_status).await,
        ]
    }

    /// Equal gets share a row.
    async fn load_gets(&self, ids: &[i64]) -> Loaded<Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut distinct = ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let rows = self.query(&self.gets, &[&distinct]).await?;
        Ok(pets_of_gets(&rows, ids))
    }

    /// A list that is alone has a plain statement, which costs less.
    async fn load_lists(&self, lists: &Lists) -> Loaded<Error> {
        let Lists { after, limits, .. } = lists;
        match lists.len() {
            0 => Ok(Vec::new()),
            1 => {
                let values: [Value<'_>; 2] = [&after[0], &limits[0]];
                let rows = self.query(&self.list, &values).await?;
                Ok(vec![rows.iter().map(pet).collect()])
            }
            _ => {
                let rows = self.query(&self.lists, &[after, limits]).await?;
                Ok(pets_of_lists(&rows, lists))
            }
        }
    }

    async fn load_lists_by_status(&self, lists: &Lists) -> Loaded<Error> {
        let Lists {
            statuses,
            after,
            limits,
        } = lists;
        match lists.len() {
            0 => Ok(Vec::new()),
            1 => {
                let values: [Value<'_>; 3] = [&statuses[0], &after[0], &limits[0]];
                let rows = self.query(&self.list_by_status, &values).await?;
                Ok(vec![rows.iter().map(pet).collect()])
            }
            _ => {
                let values: [Value<'_>; 3] = [after, limits, statuses];
                let rows = self.query(&self.lists_by_status, &values).await?;
                Ok(pets_of_lists(&rows, lists))
            }
        }
    }

    async fn query(
        &self,
        statement: &SessionStatement,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Error> {
        let Some(begin) = &self.begin else {
            return statement.query(&self.client, values).await;
        };
        self.client.batch_execute(begin).await?;
        let rows = statement.query(&self.client, values).await;
        // It also ends a transaction that an error has aborted.
        self.client.batch_execute("COMMIT").await?;
        rows
    }

    /// Returns a response to each read of a kind.
    fn responses(
        &self,
        loaded: Loaded<ConnectionError>,
        count: usize,
        settings: &ConnectionSettings,
    ) -> vec::IntoIter<Result<Vec<Pet>, Failure>> {
        let responses: Executed<Read> = match loaded {
            Ok(pets) => {
                let corrupt = |failure| Failure::new(failure, Affected::Batch);
                pets.into_iter().map(|pets| pets.map_err(corrupt)).collect()
            }
            Err(error) => vec![Err(self.failure(error, settings)); count],
        };
        responses.into_iter()
    }

    /// No statement of a read computes with values, so no error is about a row.
    fn failure(&self, error: ConnectionError, settings: &ConnectionSettings) -> Failure {
        if matches!(error, ConnectionError::NoResponse) {
            let lost = Affected::Connection(Lost::NoResponse);
            return Failure::new(StoreFailure::Timeout, lost);
        }
        let affects = match error.refused().map(Affected::by) {
            Some(Affected::Session) => Affected::Session,
            None if self.begin.is_some() => Affected::Connection(Lost::Transaction),
            _ => Affected::Batch,
        };
        Failure::new(settings.endpoint.locate(error).into(), affects)
    }
}

/// Timeout for the next response. After one that does not come, no other is awaited.
struct ResponseTimeout(Duration);

impl ResponseTimeout {
    async fn wait_for(
        &mut self,
        mut response: Pin<&mut MaybeDone<impl Future<Output = Loaded<Error>>>>,
    ) -> Loaded<ConnectionError> {
        let _ = timeout(self.0, response.as_mut()).await;
        let Some(loaded) = response.take_output() else {
            self.0 = Duration::ZERO;
            return Err(ConnectionError::NoResponse);
        };
        Ok(loaded?)
    }
}

fn pets_of_gets(rows: &[Row], ids: &[i64]) -> Vec<Pets> {
    let found = match pets_by_id(rows) {
        Ok(found) => found,
        Err(failure) => return vec![Err(failure); ids.len()],
    };
    let mut responses = Vec::with_capacity(ids.len());
    for id in ids {
        responses.push(match found.get(id) {
            Some(pet) => pet.clone().map(|pet| vec![pet]),
            None => Ok(Vec::new()),
        });
    }
    responses
}

fn pets_by_id(rows: &[Row]) -> StoreResult<HashMap<i64, StoreResult<Pet>>> {
    let mut pets = HashMap::new();
    for row in rows {
        let id = row.try_get(0).map_err(invalid_row)?;
        pets.insert(id, pet(row));
    }
    Ok(pets)
}

/// Returns the pets of each list. The first column of a row is the position of its list.
fn pets_of_lists(rows: &[Row], lists: &Lists) -> Vec<Pets> {
    let missing = StoreFailure::Corrupt("the result has no row for this list".into());
    let mut responses = vec![Err(missing); lists.len()];
    for row in rows {
        let position: i64 = row.try_get(0).unwrap_or_default();
        let index = usize::try_from(position - 1).unwrap_or(usize::MAX);
        if let Some(response) = responses.get_mut(index) {
            *response = pets(row, lists.statuses.get(index).copied());
        }
    }
    responses
}
