use animal_store_app::{ports::StoreFailure, status_number};
use animal_store_domain::{Pet, PetId, PetStatus};
use diesel::{QueryResult, result::Error::DeserializationError};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use super::{
    query::{self, Lists},
    read::Read,
};
use crate::pet_row::{PetArrays, PetRow, rows_of};

/// Reads the first pets, of every status or of one. A batch has lists of one kind only.
pub(super) struct List {
    pub(super) status: Option<PetStatus>,
    pub(super) after: Option<PetId>,
    pub(super) limit: usize,
}

impl Read for List {
    type Response = Vec<Pet>;

    fn rows(&self) -> usize {
        self.limit
    }

    async fn load(
        lists: &[&Self],
        mut connection: &AsyncPgConnection,
    ) -> QueryResult<Vec<Result<Vec<Pet>, StoreFailure>>> {
        if let [list] = lists {
            let (after, limit) = (list.after(), list.limit());
            let rows: Vec<PetRow> = match list.status_number() {
                None => query::list(after, limit).load(&mut connection).await?,
                Some(status) => query::list_by_status(status, after, limit).load(&mut connection).await?,
            };
            return Ok(vec![pets(rows)]);
        }
        let batch = Lists {
            after: lists.iter().map(|list| list.after()).collect(),
            limits: lists.iter().map(|list| list.limit()).collect(),
            statuses: lists.iter().map(|list| list.status_number()).collect(),
        };
        let rows: Vec<(i64, PetArrays)> = batch.load(&mut connection).await?;
        let mut loaded: Vec<_> = lists.iter().map(|_| Ok(Vec::new())).collect();
        for (position, arrays) in rows {
            let index = usize::try_from(position - 1).ok().filter(|&index| index < lists.len());
            let index = index.ok_or_else(|| DeserializationError("the position of a list is invalid".into()))?;
            loaded[index] = pets(rows_of(arrays, lists[index].status));
        }
        Ok(loaded)
    }
}

impl List {
    fn after(&self) -> i64 {
        self.after.map_or(0, PetId::get)
    }

    fn limit(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX)
    }

    fn status_number(&self) -> Option<i16> {
        self.status.map(status_number)
    }
}

/// Converts the rows of a list. The order of `array_agg` is not guaranteed.
fn pets(rows: impl IntoIterator<Item = PetRow>) -> Result<Vec<Pet>, StoreFailure> {
    let mut pets = rows.into_iter().map(Pet::try_from).collect::<Result<Vec<_>, _>>()?;
    pets.sort_unstable_by_key(Pet::id);
    Ok(pets)
}
