//! All code that depends on the members of a pet: its row and the decoding of it, and the values of an INSERT.

use animal_store_app::ports::StorageError;
use animal_store_domain::{CategoryId, NewPet, Pet, PetId, PetName, PetNameError, PetStatus};
use diesel::{
    deserialize::{self, FromSql, FromSqlRow},
    prelude::*,
    sql_types::Text,
    sqlite::{Sqlite, SqliteValue},
};
use thiserror::Error;

use crate::schema::tables::pets;

#[derive(Queryable, Selectable)]
#[diesel(table_name = pets, check_for_backend(Sqlite))]
pub(crate) struct PetRow {
    id: i64,
    name: StoredName,
    category_id: i64,
    status: Option<i16>,
}

/// A row of a list by status.
#[derive(Queryable, Selectable)]
#[diesel(table_name = pets, check_for_backend(Sqlite))]
pub(crate) struct PetRowWithoutStatus {
    id: i64,
    name: StoredName,
    category_id: i64,
}

#[derive(Insertable)]
#[diesel(table_name = pets)]
pub(crate) struct NewPetRow<'a> {
    name: &'a str,
    category_id: i64,
    status: Option<i16>,
    created_at: i64,
}

/// A row that is not a valid pet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("table pets, column {column}, id {id}: {problem}")]
struct CorruptRow {
    column: &'static str,
    id: i64,
    problem: String,
}

impl PetRowWithoutStatus {
    pub(crate) fn with_status(self, status: PetStatus) -> PetRow {
        PetRow { id: self.id, name: self.name, category_id: self.category_id, status: Some(status_code(status)) }
    }
}

impl<'a> NewPetRow<'a> {
    /// `created_at`: in microseconds since 1970.
    pub(crate) fn from_pet(pet: &'a NewPet, created_at: i64) -> Self {
        Self {
            name: pet.name().as_str(),
            category_id: pet.category_id().get(),
            status: pet.status().map(status_code),
            created_at,
        }
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

/// A name as it is stored. An invalid one is an error later, when the id of the row is known.
#[derive(FromSqlRow)]
pub(crate) struct StoredName(Result<PetName, PetNameError>);

impl FromSql<Text, Sqlite> for StoredName {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        let text = value.read_text();
        let (name, may_be_replaced) = (PetName::parse(text), text.contains(char::REPLACEMENT_CHARACTER));
        if may_be_replaced {
            // Diesel replaces what is not UTF-8.
            str::from_utf8(value.read_blob())?;
        }
        Ok(Self(name))
    }
}

/// Number that stands for a status in the file.
pub(crate) const fn status_code(status: PetStatus) -> i16 {
    match status {
        PetStatus::Available => 1,
        PetStatus::Pending => 2,
        PetStatus::Sold => 3,
    }
}

fn status(code: i16) -> Option<PetStatus> {
    PetStatus::ALL.into_iter().find(|status| status_code(*status) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, name: &str, status: Option<i16>) -> PetRow {
        PetRow { id, name: StoredName(PetName::parse(name)), category_id: 1, status }
    }

    #[test]
    fn a_status_is_stored_as_its_number() {
        assert_eq!(PetStatus::ALL.map(status_code), [1, 2, 3]);
        assert_eq!([1, 2, 3].map(status), PetStatus::ALL.map(Some));
        assert_eq!([0, 4, -1].map(status), [None; 3]);
    }

    #[test]
    fn an_invalid_row_is_reported_by_column_and_id() {
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
