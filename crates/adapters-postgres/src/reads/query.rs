//! The three queries of `pets`.
//!
//! Each plan is made once per connection, without the values (`plan_cache_mode = force_generic_plan`): with a bound
//! LIMIT, PostgreSQL would otherwise plan every execution, at twice the cost. The queries are written so that no such
//! plan is bad. A status is compared as a range, in the order of the index on (status, id): with `status = $1 … ORDER
//! BY id`, PostgreSQL may walk along the primary key and read all pets of other statuses. An id is compared as a range,
//! in the order of the primary key: for `id = $1`, a plan made on a small table may walk along the whole of the other
//! index.

use animal_store_domain::{PetId, PetStatus};
use diesel::{dsl::AsSelect, pg::Pg, prelude::*};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{
    pet_row::{PetRow, status_code},
    schema::tables::pets,
};

/// A query of pets with ids greater than `after`, in ascending order of id, or of one pet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PetQuery {
    List { after: i64, limit: i64 },
    ListOfStatus { status: i16, after: i64, limit: i64 },
    Find { id: i64 },
}

#[diesel::dsl::auto_type]
fn list(after: i64, limit: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table.filter(pets::id.gt(after)).order(pets::id).limit(limit).select(row)
}

#[diesel::dsl::auto_type]
fn list_of_status(status: i16, after: i64, limit: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table
        .filter(pets::status.between(status, status))
        .filter(pets::id.gt(after))
        .order((pets::status, pets::id))
        .limit(limit)
        .select(row)
}

#[diesel::dsl::auto_type]
fn find(id: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table.filter(pets::id.between(id, id)).order(pets::id).select(row)
}

impl PetQuery {
    pub(crate) fn list(status: Option<PetStatus>, after: Option<PetId>, limit: usize) -> Self {
        let after = after.map_or(0, PetId::get);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match status {
            None => Self::List { after, limit },
            Some(status) => Self::ListOfStatus { status: status_code(status), after, limit },
        }
    }

    pub(crate) const fn find(id: PetId) -> Self {
        Self::Find { id: id.get() }
    }

    /// Runs the query. On a shared connection, it is sent without waiting for the responses to others.
    pub(crate) async fn load(self, mut connection: &AsyncPgConnection) -> QueryResult<Vec<PetRow>> {
        match self {
            Self::List { after, limit } => list(after, limit).load(&mut connection).await,
            Self::ListOfStatus { status, after, limit } => {
                list_of_status(status, after, limit).load(&mut connection).await
            }
            Self::Find { id } => find(id).load(&mut connection).await,
        }
    }
}
