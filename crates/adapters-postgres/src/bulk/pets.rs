//! The pets, in bulk.

use std::time::{Duration, UNIX_EPOCH};

use animal_store_app::ports::{StoreFailure, StoredPet};
use animal_store_domain::PetId;
use tokio_postgres::types::Type;

use super::connection::{BulkConnection, Parameter};
use crate::{
    pet_row::{COLUMNS, STORED_COLUMNS, arrays, stored_pet},
    unnest::{column_names, unnest},
};

/// Returns the first pets with ids greater than `after`.
pub(super) async fn page(
    connection: &BulkConnection,
    after: Option<PetId>,
    limit: usize,
) -> Result<Vec<StoredPet>, StoreFailure> {
    let select = format!("SELECT {STORED_COLUMNS} FROM pets WHERE id > $1 ORDER BY id LIMIT $2");
    let (after, limit) = (after.map_or(0, PetId::get), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = connection.query(&select, &[(&after, Type::INT8), (&limit, Type::INT8)]).await?;
    rows.iter().map(|row| stored_pet(row).map_err(StoreFailure::Corrupt)).collect()
}

/// Adds pets with their ids. Returns `false` if one of the ids is taken.
///
/// A create locks the table before it takes an id from the sequence, and until its commit. The lock of this transaction
/// waits for the creates in flight and holds up others until the sequence is beyond the greatest id.
pub(super) async fn add(connection: &BulkConnection, pets: &[StoredPet]) -> Result<bool, StoreFailure> {
    let Some(greatest) = pets.iter().map(|stored| stored.pet.id().get()).max() else { return Ok(true) };
    let columns = [&[("id", Type::INT8_ARRAY), ("created_at", Type::TIMESTAMPTZ_ARRAY)], COLUMNS.as_slice()].concat();
    let (names, given) = (column_names(&columns), unnest(&columns));
    let ids: Vec<_> = pets.iter().map(|stored| stored.pet.id().get()).collect();
    let since_1970 = pets.iter().map(|stored| Duration::from_micros(stored.created_at.micros().unsigned_abs()));
    let created_at: Vec<_> = since_1970.map(|since_1970| UNIX_EPOCH + since_1970).collect();
    let arrays = arrays(pets.iter().map(|stored| stored.pet.new_pet()));
    let values = [&ids as _, &created_at as _].into_iter().chain(arrays.iter().map(|array| &**array as _));
    let parameters: Vec<Parameter<'_>> = values.zip(columns.into_iter().map(|(_, array)| array)).collect();
    let reserve_ids = format!(
        "LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE;
        SELECT setval('pets_id_seq', {greatest})
        WHERE coalesce(pg_sequence_last_value('pets_id_seq'), 0) < {greatest}"
    );
    connection.begin(&reserve_ids).await?;
    let insert = format!("INSERT INTO pets ({names}) SELECT {names} FROM {given}");
    match connection.write(&insert, &parameters).await? {
        None => return Ok(false),
        Some(written) if written < pets.len() as u64 => {
            return Err(connection.refused("a trigger suppressed a row of table pets"));
        }
        Some(_) => {}
    }
    connection.commit().await?;
    Ok(true)
}
