//! All code that depends on the members of a pet: the row and its decoding, and the columns and values of an INSERT.
//! Beside them are the columns of idempotency keys.

use std::{
    iter::from_fn,
    time::{SystemTime, UNIX_EPOCH},
    vec,
};

use animal_store_adapter_kit::{CorruptRow, pet_from_row};
use animal_store_app::ports::{StoreResult, StoredPet};
use animal_store_domain::{CreationTime, CreationTimeError, NewPet, Pet, PetName, PetStatus};
use tokio_postgres::{
    Error, Row,
    types::{FromSql, ToSql, Type},
};

use crate::error::invalid_row;

/// The columns of [`pet`].
pub(crate) const PET: &str = "id, name, category_id, status";

struct PetRow<'a> {
    id: i64,
    name: &'a str,
    category_id: i64,
    status: Option<i16>,
}

/// The columns of [`pets`] after the position of the list and the statuses.
pub(crate) const ARRAYS: &str = "array_agg(id), array_agg(name), array_agg(category_id)";

/// The columns that an INSERT gives beside the id, each with the type of an array of its values.
pub(crate) const COLUMNS: &[(&str, Type)] = &[
    ("name", Type::TEXT_ARRAY),
    ("category_id", Type::INT8_ARRAY),
    ("status", Type::INT2_ARRAY),
];

/// The columns of the table `idempotency_keys`, each with the type of an array of its values.
pub(crate) const RECORD_COLUMNS: &[(&str, Type)] = &[
    ("api_key_id", Type::TEXT_ARRAY),
    ("key_digest", Type::BYTEA_ARRAY),
    ("pet_digest", Type::BYTEA_ARRAY),
    ("pet_id", Type::INT8_ARRAY),
    ("expires_at", Type::TIMESTAMPTZ_ARRAY),
];

/// The values of one column for all rows of a batch.
pub(crate) type Array<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Returns the values of [`COLUMNS`], in that order.
pub(crate) fn arrays<'a>(pets: &[&'a NewPet]) -> Vec<Array<'a>> {
    vec![
        array(pets.iter().map(|pet| pet.name().as_str())),
        array(pets.iter().map(|pet| pet.category_id().get())),
        array(pets.iter().map(|pet| pet.status().map(PetStatus::number))),
    ]
}

pub(crate) fn array<'a, T: ToSql + Sync + Send + 'a>(values: impl Iterator<Item = T>) -> Array<'a> {
    Box::new(values.collect::<Vec<_>>())
}

/// Returns the names of columns as a list: `name, status`.
pub(crate) fn column_names(columns: &[(&str, Type)]) -> String {
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Returns the types of the arrays of columns.
pub(crate) fn array_types(columns: &[(&str, Type)]) -> Vec<Type> {
    columns.iter().map(|(_, array)| array.clone()).collect()
}

/// Returns the parameters of a statement as the relation `given`, with these columns and the position as `ordinal`.
pub(crate) fn unnest(columns: &[(&str, Type)]) -> String {
    let mut parameters = Vec::new();
    for (index, (_, array)) in columns.iter().enumerate() {
        parameters.push(format!("${}::{array}", index + 1));
    }
    let parameters = parameters.join(", ");
    let names = column_names(columns);
    format!("unnest({parameters}) WITH ORDINALITY AS given ({names}, ordinal)")
}

/// Decodes the columns of [`PET`].
pub(crate) fn pet(row: &Row) -> StoreResult<Pet> {
    let row = PetRow::read(row).map_err(invalid_row)?;
    Ok(row.pet()?)
}

impl<'a> PetRow<'a> {
    fn read(row: &'a Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.try_get(0)?,
            name: row.try_get(1)?,
            category_id: row.try_get(2)?,
            status: row.try_get(3)?,
        })
    }

    fn pet(self) -> Result<Pet, CorruptRow> {
        let name = PetName::parse(self.name);
        pet_from_row(self.id, name, self.category_id, self.status)
    }
}

/// Decodes the pets of a list from arrays of their columns, in ascending order of id: that of `array_agg` is not
/// guaranteed. A list by status has no array of statuses: its pets have that `status`.
pub(crate) fn pets(row: &Row, status: Option<i16>) -> StoreResult<Vec<Pet>> {
    let mut statuses = array_column(row, 1)?;
    let mut ids = array_column(row, 2)?;
    let mut names = array_column(row, 3)?;
    let mut category_ids = array_column(row, 4)?;
    let rows = from_fn(|| {
        Some(PetRow {
            id: ids.next()?,
            name: names.next()?,
            category_id: category_ids.next()?,
            status: statuses.next().unwrap_or(status),
        })
    });
    let mut pets = rows.map(PetRow::pet).collect::<Result<Vec<_>, _>>()?;
    pets.sort_unstable_by_key(Pet::id);
    Ok(pets)
}

/// Returns the values of an array. The array of an empty list is missing.
fn array_column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> StoreResult<vec::IntoIter<T>> {
    let values: Option<Vec<T>> = row.try_get(index).map_err(invalid_row)?;
    Ok(values.unwrap_or_default().into_iter())
}

/// Decodes the columns of [`PET`] and `created_at`.
pub(crate) fn stored_pet(row: &Row) -> StoreResult<StoredPet> {
    let pet = pet(row)?;
    let created_at = row.try_get("created_at").map_err(invalid_row)?;
    let created_at = creation_time(created_at).map_err(|error| CorruptRow {
        column: "created_at",
        id: pet.id().get(),
        problem: error.to_string(),
    })?;
    Ok(StoredPet { pet, created_at })
}

/// `infinity` is after the year 9999.
fn creation_time(time: SystemTime) -> Result<CreationTime, CreationTimeError> {
    let since_1970 = time.duration_since(UNIX_EPOCH);
    let micros = since_1970.map_err(|_| CreationTimeError)?.as_micros();
    CreationTime::parse(i64::try_from(micros).map_err(|_| CreationTimeError)?)
}
