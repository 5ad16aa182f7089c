use std::collections::{BTreeSet, HashMap};

use animal_store_adapter_kit::{CorruptRow, queue::Request};
use animal_store_app::{ports::StoreFailure, status_number};
use animal_store_domain::{Pet, PetId, PetStatus};
use diesel::{QueryResult, result::Error::DeserializationError};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use super::query::{self, Lists};
use crate::pet_row::{PetArrays, PetRow, rows_of};

/// A read of pets. A batch has reads of one kind only: gets, lists, or lists by status.
pub(crate) enum Read {
    /// Reads one pet, or none.
    Get(PetId),
    List(List),
}

/// Reads the first pets, of every status or of one.
pub(crate) struct List {
    pub(crate) status: Option<PetStatus>,
    pub(crate) after: Option<PetId>,
    pub(crate) limit: usize,
}

/// An invalid row fails the reads that contain it, and no others.
pub(super) type Pets = Result<Vec<Pet>, CorruptRow>;

impl Request for Read {
    type Response = Result<Vec<Pet>, StoreFailure>;

    fn rows(&self) -> usize {
        match self {
            Self::Get(_) => 1,
            Self::List(list) => list.limit,
        }
    }
}

/// Loads a batch by one statement. Returns the pets in the order of the reads.
pub(super) async fn load(reads: &[&Read], connection: &mut AsyncPgConnection) -> QueryResult<Vec<Pets>> {
    let lists: Vec<_> =
        reads.iter().filter_map(|read| if let Read::List(list) = read { Some(list) } else { None }).collect();
    match lists[..] {
        [] => gets(reads, connection).await,
        [list] => Ok(vec![list.load(connection).await?]),
        _ => load_lists(&lists, connection).await,
    }
}

/// Equal gets share a row.
async fn gets(gets: &[&Read], connection: &mut AsyncPgConnection) -> QueryResult<Vec<Pets>> {
    let id = |read: &Read| if let Read::Get(id) = read { Some(id.get()) } else { None };
    let ids: BTreeSet<_> = gets.iter().filter_map(|read| id(read)).collect();
    let rows = query::gets(ids.into_iter().collect()).load::<PetRow>(connection).await?;
    let pets: HashMap<_, _> = rows.into_iter().map(|row| (Some(row.id()), pets([row]))).collect();
    Ok(gets.iter().map(|read| pets.get(&id(read)).cloned().unwrap_or(Ok(Vec::new()))).collect())
}

async fn load_lists(lists: &[&List], connection: &mut AsyncPgConnection) -> QueryResult<Vec<Pets>> {
    let batch = Lists {
        after: lists.iter().map(|list| list.after()).collect(),
        limits: lists.iter().map(|list| list.limit()).collect(),
        statuses: lists.iter().map(|list| list.status.map(status_number)).collect(),
    };
    let rows: Vec<(i64, PetArrays)> = batch.load(connection).await?;
    let mut loaded: Vec<_> = lists.iter().map(|_| Ok(Vec::new())).collect();
    for (position, arrays) in rows {
        let index = usize::try_from(position - 1).ok().filter(|&index| index < lists.len());
        let index = index.ok_or_else(|| DeserializationError("the position of a list is invalid".into()))?;
        loaded[index] = pets(rows_of(arrays, lists[index].status));
    }
    Ok(loaded)
}

impl List {
    /// A list that is alone has a plain statement, which costs less.
    async fn load(&self, connection: &mut AsyncPgConnection) -> QueryResult<Pets> {
        let (after, limit) = (self.after(), self.limit());
        let rows: Vec<PetRow> = match self.status.map(status_number) {
            None => query::list(after, limit).load(connection).await?,
            Some(status) => query::list_by_status(status, after, limit).load(connection).await?,
        };
        Ok(pets(rows))
    }

    fn after(&self) -> i64 {
        self.after.map_or(0, PetId::get)
    }

    fn limit(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX)
    }
}

/// Converts the rows of a read. The order of `array_agg` is not guaranteed.
fn pets(rows: impl IntoIterator<Item = PetRow>) -> Pets {
    let mut pets = rows.into_iter().map(Pet::try_from).collect::<Result<Vec<_>, _>>()?;
    pets.sort_unstable_by_key(Pet::id);
    Ok(pets)
}
