//! The statements of creates, and that which deletes expired idempotency keys.

use std::time::{Duration, SystemTime};

use animal_store_app::{
    IdempotencyKey, PetDigest,
    ports::{AddPet, AddPetError, StoreFailure},
};
use animal_store_domain::{NewPet, PetId};
use diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error},
    sql_query,
    sql_types::BigInt,
};

use crate::{
    pet_row::NewPetRow,
    tables::{idempotency_keys, pets},
    values::milliseconds,
};

/// Greatest number of expired records that one transaction deletes: creates wait for it.
pub(crate) const SWEEP_SIZE: usize = 1000;

/// The id of a pet, and whether an earlier request added it.
pub(crate) type Added = (PetId, bool);

/// Inserts pets, in a transaction of the caller's.
pub(crate) struct Batch<'a> {
    pub(crate) connection: &'a mut SqliteConnection,
    pub(crate) now: SystemTime,
    /// How long an idempotency key is kept.
    pub(crate) retention: Duration,
}

impl Batch<'_> {
    /// Adds a pet, or finds the pet of its idempotency key. The outer error is that of the batch, which has to be
    /// rolled back.
    pub(crate) fn add(&mut self, request: &AddPet) -> QueryResult<Result<Added, AddPetError>> {
        let AddPet { pet, idempotency_key } = request;
        let Some(key) = idempotency_key else { return Ok(self.insert(pet)?.map(|id| (id, false))) };
        let digest = PetDigest::from_pet(pet);
        Ok(match self.find_record(key)? {
            Some((recorded, id)) if recorded == digest.as_bytes() => parse(id).map(|id| (id, true)),
            Some(_) => Err(AddPetError::IdempotencyMismatch),
            None => {
                let id = self.insert(pet)?;
                if let Ok(id) = id {
                    self.insert_record(key, digest, id)?;
                }
                id.map(|id| (id, false))
            }
        })
    }

    /// The inner error is that of the row alone.
    fn insert(&mut self, pet: &NewPet) -> QueryResult<Result<PetId, AddPetError>> {
        let since_1970 = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let row = NewPetRow::from_pet(pet, i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX));
        let id = diesel::insert_into(pets::table).values(row).returning(pets::id).get_result(self.connection);
        let refused = |reason: String| Ok(Err(StoreFailure::Unavailable(reason.into()).into()));
        match id {
            Ok(id) => Ok(parse(id)),
            Err(Error::NotFound) => refused("a trigger suppressed the row".to_owned()),
            Err(error) if is_about_one_row(&error) => refused(error.to_string()),
            Err(error) => Err(error),
        }
    }

    /// Returns the digest and the id of the pet of a key that has not expired.
    fn find_record(&mut self, key: &IdempotencyKey) -> QueryResult<Option<(Vec<u8>, i64)>> {
        use idempotency_keys::{expires_at, pet_digest, pet_id, table};
        let record =
            table.find((key.api_key().as_str(), &key.digest()[..])).filter(expires_at.gt(milliseconds(self.now)));
        record.select((pet_digest, pet_id)).first(self.connection).optional()
    }

    /// Replaces the record of an expired key.
    fn insert_record(&mut self, key: &IdempotencyKey, digest: PetDigest, id: PetId) -> QueryResult<()> {
        use idempotency_keys::{api_key_id, expires_at, key_digest, pet_digest, pet_id, table};
        let record = (
            api_key_id.eq(key.api_key().as_str()),
            key_digest.eq(&key.digest()[..]),
            pet_digest.eq(&digest.as_bytes()[..]),
            pet_id.eq(id.get()),
            expires_at.eq(milliseconds(self.now + self.retention)),
        );
        diesel::replace_into(table).values(record).execute(self.connection).map(drop)
    }
}

/// Deletes the oldest expired records, at most [`SWEEP_SIZE`], and returns their number. Any number of processes may do
/// so at once.
pub(crate) fn sweep(connection: &mut SqliteConnection) -> QueryResult<usize> {
    let expired = sql_query(format!(
        "DELETE FROM idempotency_keys WHERE (api_key_id, key_digest) IN (SELECT api_key_id, key_digest
         FROM idempotency_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT {SWEEP_SIZE})"
    ));
    expired.bind::<BigInt, _>(milliseconds(SystemTime::now())).execute(connection)
}

fn parse(id: i64) -> Result<PetId, AddPetError> {
    PetId::parse(id).map_err(|error| StoreFailure::Corrupt(error.into()).into())
}

/// Whether the failure is about one row, which breaks a constraint. SQLite has undone the statement and goes on with
/// the transaction; after other failures, it may have rolled back the transaction.
fn is_about_one_row(error: &Error) -> bool {
    use DatabaseErrorKind::{CheckViolation, ForeignKeyViolation, NotNullViolation, UniqueViolation};
    let Error::DatabaseError(kind, _) = error else { return false };
    matches!(kind, UniqueViolation | CheckViolation | NotNullViolation | ForeignKeyViolation)
}
