//! Adds a batch of pets in one transaction.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_app::ports::{AddedBulkPet, BulkPet, BulkStorageError, PetBatch, StoredPet};
use animal_store_domain::{CreationTime, PetId};
use tokio_postgres::{Row, types::Type};

use super::{bulk_connection::BulkConnection, id_reservation::reserve_ids, import_steps, snapshot::stored_pets};
use crate::pet_row::{NewPetRow, StoredPetRow};

const NEEDED: &str = "SELECT and INSERT on pets, and USAGE on the sequence pets_id_seq";

/// Key of the advisory lock of a batch: a random number that all releases have in common.
const LOCK_KEY: i64 = 6_183_402_957_731_664_209;

/// Creates cannot take the ids of a batch after its reservation; the advisory lock keeps other batches from it. The
/// lock of the table is that of a create: other reservations wait until the ids from the sequence are stored.
pub(super) async fn add(connection: &BulkConnection, batch: &PetBatch) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
    if let Some(greatest) = batch.pets.iter().filter_map(|pet| pet.id).max() {
        reserve_ids(connection, greatest).await?;
    }
    connection.begin().await?;
    connection.execute(&format!("SELECT pg_advisory_xact_lock({LOCK_KEY})"), "").await?;
    if let Some(step) = &batch.step {
        import_steps::record(connection, step).await?;
    }
    connection.execute("LOCK TABLE pets IN ROW EXCLUSIVE MODE", NEEDED).await?;
    let stored = find(connection, batch.pets.iter().filter_map(|pet| pet.id)).await?;
    let assigned = batch.pets.iter().filter(|pet| pet.id.is_none()).count();
    let (now, mut assigned) = assign_ids(connection, assigned).await?;
    let mut added = Vec::with_capacity(batch.pets.len());
    for pet in &batch.pets {
        let outcome = match pet.id {
            None => AddedBulkPet::Added(assigned.next().ok_or_else(unexpected)?),
            Some(id) => stored.get(&id).map_or(AddedBulkPet::Added(id), |stored| compare(pet, stored)),
        };
        if let (true, AddedBulkPet::IdTaken, Some(id)) = (batch.refuse_taken_ids, outcome, pet.id) {
            return Err(BulkStorageError::IdTaken(id));
        }
        added.push(outcome);
    }
    insert(connection, &batch.pets, &added, now).await?;
    connection.commit().await?;
    Ok(added)
}

async fn find(
    connection: &BulkConnection,
    ids: impl Iterator<Item = PetId>,
) -> Result<HashMap<PetId, StoredPet>, BulkStorageError> {
    let ids: Vec<_> = ids.map(PetId::get).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let select = format!("SELECT {} FROM pets WHERE id = ANY ($1)", StoredPetRow::COLUMNS);
    let pets = stored_pets(connection, &select, &[(&ids, Type::INT8_ARRAY)]).await?;
    Ok(pets.into_iter().map(|stored| (stored.pet.id(), stored)).collect())
}

/// Returns PostgreSQL's time, and ids from the sequence, in ascending order.
async fn assign_ids(
    connection: &BulkConnection,
    count: usize,
) -> Result<(SystemTime, impl Iterator<Item = PetId>), BulkStorageError> {
    let select = "SELECT now(), ARRAY (SELECT nextval('pets_id_seq') FROM generate_series(1, $1))";
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let rows = connection.query(select, &[(&count, Type::INT8)], NEEDED).await?;
    let decode = |row: &Row| Some((row.try_get(0).ok()?, row.try_get::<_, Vec<i64>>(1).ok()?));
    let (now, ids) = rows.first().and_then(decode).ok_or_else(unexpected)?;
    Ok((now, ids.into_iter().filter_map(|id| PetId::parse(id).ok())))
}

fn compare(pet: &BulkPet, stored: &StoredPet) -> AddedBulkPet {
    let same_time = pet.created_at.is_none_or(|created_at| created_at == stored.created_at);
    let same = same_time && *stored.pet.new_pet() == pet.pet;
    if same { AddedBulkPet::Exists } else { AddedBulkPet::IdTaken }
}

async fn insert(
    connection: &BulkConnection,
    pets: &[BulkPet],
    added: &[AddedBulkPet],
    now: SystemTime,
) -> Result<(), BulkStorageError> {
    let rows = pets.iter().zip(added).filter_map(|(pet, added)| match added {
        AddedBulkPet::Added(id) => Some(NewPetRow::new(*id, &pet.pet, pet.created_at.map_or(now, system_time))),
        _ => None,
    });
    let expected = added.iter().filter(|added| matches!(added, AddedBulkPet::Added(_))).count();
    let copy = format!("COPY pets ({}) FROM STDIN (FORMAT binary)", StoredPetRow::COLUMNS);
    let stored = connection.copy_in(&copy, &NewPetRow::TYPES, rows, NEEDED).await?;
    if stored == expected as u64 {
        return Ok(());
    }
    Err(BulkStorageError::Unavailable("a trigger suppressed a row of table pets".into()))
}

fn unexpected() -> BulkStorageError {
    BulkStorageError::Unavailable("the server sent an unexpected response".into())
}

fn system_time(time: CreationTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(time.micros().unsigned_abs())
}
