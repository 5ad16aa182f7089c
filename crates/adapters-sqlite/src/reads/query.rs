//! The queries of `pets`. Each is a range of the table or of the index on (status, id), in its order.

use diesel::{dsl::AsSelect, prelude::*, sqlite::Sqlite};

use crate::{
    pet_row::{PetRow, PetRowWithoutStatus},
    schema::tables::pets,
};

/// The pet with this id.
#[diesel::dsl::auto_type]
pub(super) fn find(id: i64) -> _ {
    let row: AsSelect<PetRow, Sqlite> = PetRow::as_select();
    pets::table.filter(pets::id.eq(id)).select(row)
}

/// The first pets with ids greater than `after`.
#[diesel::dsl::auto_type]
pub(super) fn list(after: i64, limit: i64) -> _ {
    let row: AsSelect<PetRow, Sqlite> = PetRow::as_select();
    pets::table.filter(pets::id.gt(after)).order(pets::id).limit(limit).select(row)
}

/// The first pets of a status with ids greater than `after`.
#[diesel::dsl::auto_type]
pub(super) fn list_by_status(status: i16, after: i64, limit: i64) -> _ {
    let row: AsSelect<PetRowWithoutStatus, Sqlite> = PetRowWithoutStatus::as_select();
    pets::table.filter(pets::status.eq(status)).filter(pets::id.gt(after)).order(pets::id).limit(limit).select(row)
}
