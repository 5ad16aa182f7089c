use std::collections::{BTreeSet, HashMap};

use animal_store_adapter_kit::{CorruptRow, queue::Request};
use animal_store_app::ports::{Cause, StoreFailure};
use animal_store_domain::{Pet, PetStatus};
use tokio_postgres::{Client, Error, Row, types::ToSql};

use super::query;
use crate::{
    PostgresSettings,
    batching::{Executed, Extent, Failure, Session, SessionStatement},
    connection::{ConnectionSettings, ConnectionTask},
    error::{ConnectionError, Suspect, within},
    pet_row::{PetArrays, PetRow},
};

/// A read of pets. A batch has reads of one kind only: gets, lists, or lists by status.
pub(crate) enum Read {
    /// Reads one pet, or none.
    Get(i64),
    List(List),
}

impl Read {
    fn id(&self) -> Option<i64> {
        match self {
            Self::Get(id) => Some(*id),
            Self::List(_) => None,
        }
    }

    fn list(&self) -> Option<&List> {
        match self {
            Self::Get(_) => None,
            Self::List(list) => Some(list),
        }
    }
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

/// A connection for reads. It does not use Diesel, which hides the SQLSTATEs that decide about the session.
pub(crate) struct ReadSession {
    client: Client,
    /// Behind a pooler, each batch is a transaction: the statements that begin it.
    begin: Option<String>,
    gets: SessionStatement,
    list: SessionStatement,
    list_by_status: SessionStatement,
    lists: SessionStatement,
    lists_by_status: SessionStatement,
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
        let statement = |query| SessionStatement::new(&client, query, settings);
        let begin = || format!("BEGIN READ ONLY; {}", settings.set_statements("SET LOCAL"));
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

    async fn execute(&mut self, reads: &[&Read], settings: &ConnectionSettings) -> Executed<Read> {
        let loaded = within(settings.postgres.timeout, self.load(reads)).await;
        let rows = loaded.map_err(|error| {
            let extent = self.extent(&error);
            Failure::of_read(error, extent, settings)
        })?;
        let pets = pets_of_batch(reads, &rows).map_err(|error| Failure {
            error: StoreFailure::Corrupt,
            reason: error.to_string(),
            extent: Extent::Request,
        })?;
        Ok(pets.into_iter().map(|pets| Ok(pets?)).collect())
    }
}

impl ReadSession {
    /// Loads the rows of a batch by one statement. A list that is alone has a plain one, which costs less.
    async fn load(&self, reads: &[&Read]) -> Result<Vec<Row>, Error> {
        match reads {
            [
                Read::List(List {
                    status,
                    after,
                    limit,
                }),
            ] => match status.map(PetStatus::number) {
                None => self.query(&self.list, &[after, limit]).await,
                Some(status) => {
                    self.query(&self.list_by_status, &[&status, after, limit])
                        .await
                }
            },
            [Read::Get(_), ..] => {
                let ids: BTreeSet<_> = reads.iter().filter_map(|read| read.id()).collect();
                let ids: Vec<_> = ids.into_iter().collect();
                self.query(&self.gets, &[&ids]).await
            }
            _ => {
                let lists = || reads.iter().filter_map(|read| read.list());
                let after: Vec<_> = lists().map(|list| list.after).collect();
                let limits: Vec<_> = lists().map(|list| list.limit).collect();
                let statuses: Option<Vec<_>> = lists()
                    .map(|list| list.status.map(PetStatus::number))
                    .collect();
                match statuses {
                    None => self.query(&self.lists, &[&after, &limits]).await,
                    Some(statuses) => {
                        self.query(&self.lists_by_status, &[&after, &limits, &statuses])
                            .await
                    }
                }
            }
        }
    }

    async fn query(
        &self,
        statement: &SessionStatement,
        values: &[&(dyn ToSql + Sync)],
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

    /// No statement of a read computes with values, so no error is about a row.
    fn extent(&self, error: &ConnectionError) -> Extent {
        match error.suspect() {
            Some(Suspect::Session) => Extent::Session,
            None if self.begin.is_some() => {
                Extent::Connection("the connection could not begin or end a transaction")
            }
            _ => Extent::Batch,
        }
    }
}

/// Returns the pets in the order of the reads.
fn pets_of_batch(reads: &[&Read], rows: &[Row]) -> Result<Vec<Pets>, Cause> {
    match reads {
        [Read::List(_)] => Ok(vec![pets(read_rows(rows)?)]),
        [Read::Get(_), ..] => Ok(pets_of_gets(reads, read_rows(rows)?)),
        _ => pets_of_lists(reads, rows),
    }
}

fn read_rows(rows: &[Row]) -> Result<Vec<PetRow<'_>>, ConnectionError> {
    let rows = rows.iter().map(PetRow::read);
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Equal gets share a row.
fn pets_of_gets(gets: &[&Read], rows: Vec<PetRow<'_>>) -> Vec<Pets> {
    let found: HashMap<_, _> = rows
        .into_iter()
        .map(|row| (Some(row.id), pets([row])))
        .collect();
    gets.iter()
        .map(|read| found.get(&read.id()).cloned().unwrap_or(Ok(Vec::new())))
        .collect()
}

fn pets_of_lists(lists: &[&Read], rows: &[Row]) -> Result<Vec<Pets>, Cause> {
    let mut loaded: Vec<_> = lists.iter().map(|_| Ok(Vec::new())).collect();
    for row in rows {
        let position: i64 = row.try_get(0).map_err(ConnectionError::from)?;
        let index = usize::try_from(position - 1).unwrap_or(usize::MAX);
        let list = lists.get(index).and_then(|read| read.list());
        let list = list.ok_or("the position of a list is invalid")?;
        let arrays = PetArrays::read(row).map_err(ConnectionError::from)?;
        loaded[index] = pets(arrays.rows(list.status));
    }
    Ok(loaded)
}

/// Converts the rows of a read. The order of `array_agg` is not guaranteed.
fn pets<'a>(rows: impl IntoIterator<Item = PetRow<'a>>) -> Pets {
    let mut pets = rows
        .into_iter()
        .map(Pet::try_from)
        .collect::<Result<Vec<_>, _>>()?;
    pets.sort_unstable_by_key(Pet::id);
    Ok(pets)
}
