//! The statements of a batch of creates, in a transaction of the caller's.

use std::time::{Duration, SystemTime};

use animal_store_app::{
    PetDigest,
    ports::{AddPet, IdempotencyRecord, StoreFailure},
};
use animal_store_domain::{NewPet, PetId};
use diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error},
};

use crate::{
    idempotency,
    pet_row::{NewPetRow, pets},
};

/// The id of a pet, and whether an earlier request added it.
pub(crate) type Added = (PetId, bool);

/// Adds a pet, or finds the pet of its idempotency key, which is kept for `retention`. `None`: the key was used for
/// another pet. The outer error is that of the batch, which has to be rolled back.
pub(crate) fn add(
    connection: &mut SqliteConnection,
    request: &AddPet,
    now: SystemTime,
    retention: Duration,
) -> QueryResult<Result<Option<Added>, StoreFailure>> {
    let AddPet {
        pet,
        idempotency_key,
    } = request;
    let Some(key) = idempotency_key else {
        return Ok(insert(connection, pet, now)?.map(|id| Some((id, false))));
    };
    let pet_digest = PetDigest::from_pet(pet);
    Ok(match idempotency::find(connection, key, now)? {
        Some((recorded, id)) if recorded == pet_digest.0 => parse(id).map(|id| Some((id, true))),
        Some(_) => Ok(None),
        None => {
            let inserted = insert(connection, pet, now)?;
            if let Ok(pet_id) = inserted {
                let record = IdempotencyRecord {
                    key: key.clone(),
                    pet_digest,
                    pet_id,
                    expires_at: now + retention,
                };
                idempotency::add(connection, &record, now)?;
            }
            inserted.map(|id| Some((id, false)))
        }
    })
}

/// The inner error is that of the row alone.
fn insert(
    connection: &mut SqliteConnection,
    pet: &NewPet,
    now: SystemTime,
) -> QueryResult<Result<PetId, StoreFailure>> {
    let since_1970 = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let row = NewPetRow::from_pet(
        pet,
        i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX),
    );
    let refused = |reason: String| Ok(Err(StoreFailure::Unavailable(reason.into())));
    match diesel::insert_into(pets::table)
        .values(row)
        .returning(pets::id)
        .get_result(connection)
    {
        Ok(id) => Ok(parse(id)),
        Err(Error::NotFound) => refused("a trigger suppressed the row".to_owned()),
        Err(error) if is_about_one_row(&error) => refused(error.to_string()),
        Err(error) => Err(error),
    }
}

fn parse(id: i64) -> Result<PetId, StoreFailure> {
    PetId::parse(id).map_err(|error| StoreFailure::Corrupt(error.into()))
}

/// Whether the failure is about one row, which breaks a constraint. SQLite has undone the statement and goes on with
/// the transaction; after other failures, it may have rolled back the transaction.
fn is_about_one_row(error: &Error) -> bool {
    use DatabaseErrorKind::{
        CheckViolation, ForeignKeyViolation, NotNullViolation, UniqueViolation,
    };
    let Error::DatabaseError(kind, _) = error else {
        return false;
    };
    matches!(
        kind,
        UniqueViolation | CheckViolation | NotNullViolation | ForeignKeyViolation
    )
}
