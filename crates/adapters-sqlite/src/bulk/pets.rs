//! Rows of pets: reading them in order of id, and adding them with or without an id.

use std::{
    collections::HashSet,
    time::{SystemTime, UNIX_EPOCH},
};

use animal_store_app::{
    CorruptRow,
    ports::{AddedBulkPet, BulkPet, StorageError, StoredPet},
    status_number,
};
use animal_store_domain::{CreationTime, Pet, PetId};
use diesel::prelude::*;

use super::error::{BulkError, Refusal};
use crate::{
    change::AccessError,
    pet_row::PetRow,
    schema::tables::{pets, sqlite_sequence},
};

/// SQLite allows 32,766 values in a statement, and a pet has five.
const ROWS_PER_STATEMENT: usize = 500;

/// A pet with its creation time in microseconds since 1970.
type StoredPetRow = (PetRow, i64);

/// Returns the first `limit` pets with greater ids, in ascending order of id.
pub(super) fn read(
    connection: &mut SqliteConnection,
    after: Option<PetId>,
    limit: i64,
) -> Result<Vec<StoredPet>, BulkError> {
    // Includes rows with invalid ids, so that they are reported.
    let after = after.map_or(i64::MIN, PetId::get);
    let page = pets::table.filter(pets::id.gt(after)).order(pets::id).limit(limit);
    let page = page.select((PetRow::as_select(), pets::created_at));
    page.load_iter::<StoredPetRow, _>(connection)?.map(|row| parse(row?)).collect()
}

/// Adds pets. A statement with many rows takes less than half of the time of one statement for each row.
pub(super) fn add(
    connection: &mut SqliteConnection,
    batch: &[BulkPet],
    refuse_taken_ids: bool,
) -> Result<Vec<AddedBulkPet>, BulkError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let mut last_id = last_id(connection, batch)?;
    let mut added = Vec::with_capacity(batch.len());
    for pets in batch.chunks(ROWS_PER_STATEMENT) {
        let mut next_id = || {
            last_id = last_id.checked_add(1).ok_or_else(no_id_left)?;
            Ok(last_id)
        };
        let ids = pets.iter().map(|pet| pet.id.map_or_else(&mut next_id, |id| Ok(id.get())));
        let ids = ids.collect::<Result<Vec<i64>, BulkError>>()?;
        let inserted = insert(connection, pets, &ids, now)?;
        for (pet, id) in pets.iter().zip(ids) {
            let result =
                if inserted.contains(&id) { AddedBulkPet::Added(valid(id)?) } else { compare(connection, pet)? };
            match (result, pet.id) {
                (AddedBulkPet::IdTaken, Some(id)) if refuse_taken_ids => {
                    return Err(AccessError::Refused(Refusal::IdTaken(id)));
                }
                _ => added.push(result),
            }
        }
    }
    Ok(added)
}

/// Returns the greatest id that was ever assigned, or that the batch gives: assigned ids begin after it.
fn last_id(connection: &mut SqliteConnection, batch: &[BulkPet]) -> Result<i64, BulkError> {
    let assigned = sqlite_sequence::table.filter(sqlite_sequence::name.eq("pets")).select(sqlite_sequence::seq);
    let assigned: Option<i64> = assigned.first(connection).optional()?;
    let given = batch.iter().filter_map(|pet| pet.id).max();
    Ok(assigned.unwrap_or_default().max(given.map_or(0, PetId::get)))
}

/// Inserts pets under these ids, except under taken ids. Returns the ids of the inserted pets.
fn insert(
    connection: &mut SqliteConnection,
    pets: &[BulkPet],
    ids: &[i64],
    now: i64,
) -> Result<HashSet<i64>, BulkError> {
    let rows = pets.iter().zip(ids).map(|(BulkPet { pet, created_at, .. }, id)| {
        (
            pets::id.eq(*id),
            pets::name.eq(pet.name().as_str()),
            pets::category_id.eq(pet.category_id().get()),
            pets::status.eq(pet.status().map(status_number)),
            pets::created_at.eq(created_at.map_or(now, CreationTime::micros)),
        )
    });
    let rows: Vec<_> = rows.collect();
    let insertion = diesel::insert_into(pets::table).values(rows).on_conflict(pets::id).do_nothing();
    let inserted: Vec<i64> = insertion.returning(pets::id).get_results(connection)?;
    Ok(inserted.into_iter().collect())
}

/// Compares a pet with the one that has its id.
fn compare(
    connection: &mut SqliteConnection,
    BulkPet { id, pet, created_at }: &BulkPet,
) -> Result<AddedBulkPet, BulkError> {
    let Some(id) = id else { return Err(no_id_left()) };
    let stored = pets::table.find(id.get()).select((PetRow::as_select(), pets::created_at));
    let stored = parse(stored.first(connection)?)?;
    let exists = stored.pet.new_pet() == pet && created_at.is_none_or(|created_at| created_at == stored.created_at);
    Ok(if exists { AddedBulkPet::Exists } else { AddedBulkPet::IdTaken })
}

fn no_id_left() -> BulkError {
    AccessError::Corrupt("no id is left for another pet".to_owned())
}

fn valid(id: i64) -> Result<PetId, BulkError> {
    PetId::parse(id).map_err(|error| AccessError::Corrupt(error.to_string()))
}

fn parse((row, created_at): StoredPetRow) -> Result<StoredPet, BulkError> {
    let pet = Pet::try_from(row).map_err(|error| match error {
        StorageError::Corrupt(cause) => AccessError::Corrupt(cause.to_string()),
        error => AccessError::Corrupt(error.to_string()),
    })?;
    let created_at = CreationTime::parse(created_at).map_err(|error| {
        let row = CorruptRow { column: "created_at", id: pet.id().get(), problem: error.to_string() };
        AccessError::Corrupt(row.to_string())
    })?;
    Ok(StoredPet { pet, created_at })
}
