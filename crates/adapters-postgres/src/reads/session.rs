use std::collections::{BTreeSet, HashMap};

use animal_store_adapter_kit::{CorruptRow, queue::Request};
use animal_store_app::ports::StoreFailure;
use animal_store_domain::{Pet, PetStatus};
use diesel::{QueryResult, connection::CacheSize, result::Error::DeserializationError};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use tokio_postgres::Client;

use super::query::{self, Lists};
use crate::{
    PostgresSettings,
    batching::{Executed, Extent, Failure, Session},
    connection::{ConnectionSettings, ConnectionTask},
    error::{ConnectionError, within},
    pet_row::{PetArrays, PetRow, rows_of},
};

/// A read of pets. A batch has reads of one kind only: gets, lists, or lists by status.
pub(crate) enum Read {
    /// Reads one pet, or none.
    Get(i64),
    List(List),
}

/// Reads the first pets, of every status or of one.
pub(crate) struct List {
    pub(crate) status: Option<PetStatus>,
    pub(crate) after: i64,
    pub(crate) limit: i64,
}

/// An invalid row fails the reads that contain it, and no others.
type Pets = Result<Vec<Pet>, CorruptRow>;

impl Request for Read {
    type Response = Vec<Pet>;

    fn rows(&self) -> usize {
        match self {
            Self::Get(_) => 1,
            Self::List(list) => usize::try_from(list.limit).unwrap_or(usize::MAX),
        }
    }
}

/// A connection for reads.
pub(crate) struct ReadSession {
    connection: AsyncPgConnection,
    /// Behind a pooler, each batch is a transaction: the statements that begin it.
    begin: Option<String>,
}

impl Session for ReadSession {
    type Request = Read;

    const PURPOSE: &'static str = "reads";
    /// PostgreSQL executes such a batch in about a millisecond. A larger one costs as much per row.
    const MAX_ROWS: usize = 500;
    const CHANGES_PETS: bool = false;

    async fn prepare(
        client: Client,
        _: &ConnectionTask,
        settings: &PostgresSettings,
    ) -> Result<Self, ConnectionError> {
        if !settings.transaction_pooling {
            return Ok(Self {
                connection: AsyncPgConnection::try_from(client).await?,
                begin: None,
            });
        }
        // Diesel first prepares its own statements: the transaction keeps them on one server connection.
        client.batch_execute("BEGIN").await?;
        let mut connection = AsyncPgConnection::try_from(client).await?;
        connection.batch_execute("COMMIT").await?;
        connection.set_prepared_statement_cache_size(CacheSize::Disabled);
        let begin = format!("BEGIN READ ONLY; {}", settings.set_statements("SET LOCAL"));
        Ok(Self {
            connection,
            begin: Some(begin),
        })
    }

    async fn execute(&mut self, reads: &[&Read], settings: &ConnectionSettings) -> Executed<Read> {
        let unfinished = Extent::Connection("the connection could not begin or end a transaction");
        let loaded = within(settings.postgres.timeout, self.load(reads)).await;
        match loaded.map_err(|error| Failure::of_read(error, unfinished, settings))? {
            Ok(pets) => Ok(pets.into_iter().map(|pets| Ok(pets?)).collect()),
            Err(DeserializationError(cause)) => Err(Failure {
                error: StoreFailure::Corrupt,
                reason: cause.to_string(),
                extent: Extent::Request,
            }),
            // Diesel hides the SQLSTATE. No statement of a read computes with values, so no error is about a row.
            Err(error) => Err(Failure::of_read(error.into(), Extent::Batch, settings)),
        }
    }
}

impl ReadSession {
    /// Loads a batch. The outer error is that of its transaction, after which the state of the connection is unknown.
    async fn load(&mut self, reads: &[&Read]) -> QueryResult<QueryResult<Vec<Pets>>> {
        let Some(begin) = &self.begin else {
            return Ok(load(reads, &mut self.connection).await);
        };
        self.connection.batch_execute(begin).await?;
        let loaded = load(reads, &mut self.connection).await;
        self.connection.batch_execute("COMMIT").await?;
        Ok(loaded)
    }
}

/// Loads a batch by one statement. Returns the pets in the order of the reads.
async fn load(reads: &[&Read], connection: &mut AsyncPgConnection) -> QueryResult<Vec<Pets>> {
    let lists: Vec<_> = reads
        .iter()
        .filter_map(|read| {
            if let Read::List(list) = read {
                Some(list)
            } else {
                None
            }
        })
        .collect();
    match lists[..] {
        [] => gets(reads, connection).await,
        [list] => Ok(vec![load_list(list, connection).await?]),
        _ => load_lists(&lists, connection).await,
    }
}

/// Equal gets share a row.
async fn gets(gets: &[&Read], connection: &mut AsyncPgConnection) -> QueryResult<Vec<Pets>> {
    let id = |read: &Read| {
        if let Read::Get(id) = read {
            Some(*id)
        } else {
            None
        }
    };
    let ids: BTreeSet<_> = gets.iter().filter_map(|read| id(read)).collect();
    let rows = query::gets(ids.into_iter().collect())
        .load::<PetRow>(connection)
        .await?;
    let pets: HashMap<_, _> = rows
        .into_iter()
        .map(|row| (Some(row.id), pets([row])))
        .collect();
    Ok(gets
        .iter()
        .map(|read| pets.get(&id(read)).cloned().unwrap_or(Ok(Vec::new())))
        .collect())
}

async fn load_lists(lists: &[&List], connection: &mut AsyncPgConnection) -> QueryResult<Vec<Pets>> {
    let batch = Lists {
        after: lists.iter().map(|list| list.after).collect(),
        limits: lists.iter().map(|list| list.limit).collect(),
        statuses: lists
            .iter()
            .map(|list| list.status.map(PetStatus::number))
            .collect(),
    };
    let rows: Vec<(i64, PetArrays)> = batch.load(connection).await?;
    let mut loaded: Vec<_> = lists.iter().map(|_| Ok(Vec::new())).collect();
    for (position, arrays) in rows {
        let index = usize::try_from(position - 1)
            .ok()
            .filter(|&index| index < lists.len());
        let index = index
            .ok_or_else(|| DeserializationError("the position of a list is invalid".into()))?;
        loaded[index] = pets(rows_of(arrays, lists[index].status));
    }
    Ok(loaded)
}

/// A list that is alone has a plain statement, which costs less.
async fn load_list(list: &List, connection: &mut AsyncPgConnection) -> QueryResult<Pets> {
    let rows: Vec<PetRow> = match list.status.map(PetStatus::number) {
        None => query::list(list.after, list.limit).load(connection).await?,
        Some(status) => {
            query::list_by_status(status, list.after, list.limit)
                .load(connection)
                .await?
        }
    };
    Ok(pets(rows))
}

/// Converts the rows of a read. The order of `array_agg` is not guaranteed.
fn pets(rows: impl IntoIterator<Item = PetRow>) -> Pets {
    let mut pets = rows
        .into_iter()
        .map(Pet::try_from)
        .collect::<Result<Vec<_>, _>>()?;
    pets.sort_unstable_by_key(Pet::id);
    Ok(pets)
}
