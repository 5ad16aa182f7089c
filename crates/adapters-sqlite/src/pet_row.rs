//! All code that depends on the members of a pet: the table, the columns of a SELECT and their decoding, and the values
//! of an INSERT.

use animal_store_adapter_kit::pet_from_row;
use animal_store_domain::{NewPet, Pet, PetName, PetNameError, PetStatus};
use diesel::{
    deserialize::{self, FromSql, FromSqlRow},
    prelude::*,
    sql_types::Text,
    sqlite::{Sqlite, SqliteValue},
};

use crate::error::corrupt;

diesel::table! {
    pets (id) {
        id -> BigInt,
        name -> Text,
        category_id -> BigInt,
        status -> Nullable<SmallInt>,
        created_at -> BigInt,
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = pets, check_for_backend(Sqlite))]
pub(crate) struct PetRow {
    id: i64,
    name: StoredName,
    category_id: i64,
    status: Option<i16>,
}

/// What every INSERT writes beside the id: that of a create, and that of a copy.
#[derive(Insertable)]
#[diesel(table_name = pets, treat_none_as_default_value = false)]
pub(crate) struct NewPetRow<'a> {
    name: &'a str,
    category_id: i64,
    status: Option<i16>,
    created_at: i64,
}

impl<'a> NewPetRow<'a> {
    /// `created_at`: in microseconds since 1970.
    pub(crate) fn from_pet(pet: &'a NewPet, created_at: i64) -> Self {
        Self {
            name: pet.name().as_str(),
            category_id: pet.category_id().get(),
            status: pet.status().map(PetStatus::number),
            created_at,
        }
    }
}

impl TryFrom<PetRow> for Pet {
    type Error = diesel::result::Error;

    fn try_from(row: PetRow) -> QueryResult<Self> {
        pet_from_row(row.id, row.name.0, row.category_id, row.status).map_err(corrupt)
    }
}

/// A name as it is stored. An invalid one is an error later, when the id of the row is known.
#[derive(FromSqlRow)]
pub(crate) struct StoredName(Result<PetName, PetNameError>);

impl FromSql<Text, Sqlite> for StoredName {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        let text = value.read_text();
        let name = PetName::parse(text);
        let may_be_replaced = text.contains(char::REPLACEMENT_CHARACTER);
        if may_be_replaced {
            // Diesel replaces what is not UTF-8.
            str::from_utf8(value.read_blob())?;
        }
        Ok(Self(name))
    }
}
