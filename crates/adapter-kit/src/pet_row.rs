//! The columns of a pet, as adapters store them in a table `pets`.

use animal_store_app::ports::{Cause, StoreFailure};
use animal_store_domain::{CategoryId, NewPet, Pet, PetId, PetName, PetNameError, PetStatus};
use thiserror::Error;

/// A row of the table `pets` that is not a valid pet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("table pets, column {column}, id {id}: {problem}")]
pub struct CorruptRow {
    /// The column with the invalid value.
    pub column: &'static str,
    /// The id of the row.
    pub id: i64,
    /// The reason why the value is invalid.
    pub problem: String,
}

/// Builds the pet of a row of the table `pets`. `status`: its [number](PetStatus::number), or
/// none.
///
/// # Errors
/// The first column with an invalid value.
pub fn pet_from_row(
    id: i64,
    name: Result<PetName, PetNameError>,
    category_id: i64,
    status: Option<i16>,
) -> Result<Pet, CorruptRow> {
    let corrupt = |column, problem| CorruptRow {
        column,
        id,
        problem,
    };
    let pet_id = PetId::parse(id).map_err(|error| corrupt("id", error.to_string()))?;
    let name = name.map_err(|error| corrupt("name", error.to_string()))?;
    let mut new_pet = NewPet::new(name, CategoryId::new(category_id));
    if let Some(number) = status {
        let status = PetStatus::from_number(number);
        let status = status.ok_or_else(|| corrupt("status", format!("unknown: {number}")))?;
        new_pet = new_pet.with_status(status);
    }
    Ok(Pet::new(pet_id, new_pet))
}

impl From<CorruptRow> for StoreFailure {
    fn from(row: CorruptRow) -> Self {
        Self::Corrupt(Cause::of(&row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_row_is_reported_by_column_and_id() {
        for (id, name, status, column) in [
            (0, "Rex", None, "id"),
            (7, " ", None, "name"),
            (7, "Rex", Some(4), "status"),
        ] {
            let error = pet_from_row(id, PetName::parse(name), 1, status).unwrap_err();
            let StoreFailure::Corrupt(cause) = error.into() else {
                panic!("corrupt")
            };
            let message = cause.to_string();
            assert!(
                message.starts_with(&format!("table pets, column {column}, id {id}: ")),
                "{message}"
            );
        }
    }
}
