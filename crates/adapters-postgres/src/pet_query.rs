//! The three questions that are asked of `pets`.
//!
//! Their plans are made once for each connection, without looking at the values (`plan_cache_mode =
//! force_generic_plan`): a bound LIMIT would have PostgreSQL plan every execution anew, at twice the cost. So that no
//! such plan can be a bad one, a status is asked for as a range, by the order of the index on (status, id): with
//! `status = $1 … ORDER BY id` the primary key serves as well, and reads every animal of the other statuses. An id is
//! asked for as a range, by the order of the primary key: for `id = $1`, a plan made on a table of few rows walks along
//! the whole of the other index.

use animal_store_domain::{PetId, PetStatus};
use diesel::{dsl::AsSelect, pg::Pg, prelude::*};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{
    pet_row::{PetRow, code},
    schema::pets,
};

/// What is asked. Animals come in ascending order of id.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PetQuery {
    /// Those that follow an id.
    Page { after: i64, at_most: i64 },
    /// Those of a status that follow an id.
    PageOf { status: i16, after: i64, at_most: i64 },
    /// The one with this id.
    One { id: i64 },
}

#[diesel::dsl::auto_type]
fn page(after: i64, at_most: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table.filter(pets::id.gt(after)).order(pets::id).limit(at_most).select(row)
}

#[diesel::dsl::auto_type]
fn page_of(status: i16, after: i64, at_most: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table
        .filter(pets::status.between(status, status))
        .filter(pets::id.gt(after))
        .order((pets::status, pets::id))
        .limit(at_most)
        .select(row)
}

#[diesel::dsl::auto_type]
fn one(id: i64) -> _ {
    let row: AsSelect<PetRow, Pg> = PetRow::as_select();
    pets::table.filter(pets::id.between(id, id)).order(pets::id).select(row)
}

impl PetQuery {
    pub(crate) fn page(status: Option<PetStatus>, after: Option<PetId>, at_most: usize) -> Self {
        let after = after.map_or(0, PetId::get);
        let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
        match status {
            None => Self::Page { after, at_most },
            Some(status) => Self::PageOf { status: code(status), after, at_most },
        }
    }

    /// Asks. On a shared connection, questions travel one behind the other without waiting for answers.
    pub(crate) async fn load(self, mut connection: &AsyncPgConnection) -> QueryResult<Vec<PetRow>> {
        match self {
            Self::Page { after, at_most } => page(after, at_most).load(&mut connection).await,
            Self::PageOf { status, after, at_most } => page_of(status, after, at_most).load(&mut connection).await,
            Self::One { id } => one(id).load(&mut connection).await,
        }
    }
}

#[cfg(test)]
mod plans;
