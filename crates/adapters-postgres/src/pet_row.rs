use animal_store_app::ports::StorageError;
use animal_store_domain::{CategoryId, NewPet, Pet, PetId, PetName, PetNameError, PetStatus};
use diesel::{
    deserialize::{self, FromSql, FromSqlRow},
    pg::{Pg, PgValue},
    prelude::*,
    sql_types::Text,
};
use thiserror::Error;

use crate::schema::pets;

/// A row of `pets`.
#[derive(Queryable, Selectable)]
#[diesel(table_name = pets, check_for_backend(Pg))]
pub(crate) struct PetRow {
    id: i64,
    name: StoredName,
    category_id: i64,
    status: Option<i16>,
}

/// A name as it was found: whether it is one is asked where the row's id is known.
#[derive(FromSqlRow)]
pub(crate) struct StoredName(Result<PetName, PetNameError>);

/// A row that no animal can be made of.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("table pets, column {column}, id {id}: {problem}")]
struct CorruptRow {
    column: &'static str,
    id: i64,
    problem: String,
}

impl FromSql<Text, Pg> for StoredName {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(PetName::parse(std::str::from_utf8(value.as_bytes())?)))
    }
}

impl TryFrom<PetRow> for Pet {
    type Error = StorageError;

    fn try_from(row: PetRow) -> Result<Self, StorageError> {
        let corrupt = |column, problem| StorageError::Corrupt(CorruptRow { column, id: row.id, problem }.into());
        let id = PetId::parse(row.id).map_err(|error| corrupt("id", error.to_string()))?;
        let name = row.name.0.map_err(|error| corrupt("name", error.to_string()))?;
        let status = row.status.map(|code| status(code).ok_or_else(|| corrupt("status", format!("unknown: {code}"))));
        Ok(Self::new(id, NewPet::new(name, CategoryId::new(row.category_id)).with_status(status.transpose()?)))
    }
}

/// How a status is stored.
pub(crate) const fn code(status: PetStatus) -> i16 {
    match status {
        PetStatus::Available => 1,
        PetStatus::Pending => 2,
        PetStatus::Sold => 3,
    }
}

fn status(code: i16) -> Option<PetStatus> {
    PetStatus::ALL.into_iter().find(|status| self::code(*status) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, name: &str, status: Option<i16>) -> PetRow {
        PetRow { id, name: StoredName(PetName::parse(name)), category_id: 1, status }
    }

    #[test]
    fn a_status_is_stored_by_its_number() {
        assert_eq!(PetStatus::ALL.map(code), [1, 2, 3]);
        assert_eq!([1, 2, 3].map(status), PetStatus::ALL.map(Some));
        assert_eq!([0, 4, -1].map(status), [None; 3]);
    }

    #[test]
    fn a_row_that_is_no_animal_is_named_by_column_and_id() {
        for (row, column) in
            [(row(0, "Rex", None), "id"), (row(7, " ", None), "name"), (row(7, "Rex", Some(4)), "status")]
        {
            let id = row.id;
            let StorageError::Corrupt(cause) = Pet::try_from(row).unwrap_err() else { panic!("corrupt") };
            let message = cause.to_string();
            assert!(message.starts_with(&format!("table pets, column {column}, id {id}: ")), "{message}");
        }
    }
}
