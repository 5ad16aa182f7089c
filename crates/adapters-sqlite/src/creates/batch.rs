//! The statements of a batch.

use std::time::{Duration, SystemTime};

use animal_store_app::{
    IdempotencyKey, PetDigest,
    ports::{AddPet, AddPetError},
};
use animal_store_domain::{NewPet, PetId};
use diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error},
    sqlite::Sqlite,
};

use crate::{
    SqliteFile,
    access::{AccessError, corrupt},
    pet_row::NewPetRow,
    tables::{idempotency_keys, pets},
    values::milliseconds,
};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = idempotency_keys, check_for_backend(Sqlite))]
struct RecordRow {
    pet_digest: Vec<u8>,
    pet_id: i64,
    /// In milliseconds since 1970.
    expires_at: i64,
}

/// The id of a pet, and whether an earlier request added it.
pub(super) type Added = (PetId, bool);

/// Inserts pets, in a transaction of the caller's.
pub(super) struct Batch<'a> {
    pub(super) file: &'a SqliteFile,
    pub(super) connection: &'a mut SqliteConnection,
    pub(super) now: SystemTime,
    pub(super) retention: Duration,
}

impl Batch<'_> {
    /// Adds a pet, or finds the pet of its idempotency key. The outer error is that of the batch, which has to be
    /// rolled back.
    pub(super) fn add(&mut self, request: &AddPet) -> QueryResult<Result<Added, AddPetError>> {
        let AddPet { pet, idempotency_key } = request;
        let Some(key) = idempotency_key else { return Ok(self.insert(pet)?.map(|id| (id, false))) };
        let digest = PetDigest::from_pet(pet).as_bytes().to_vec();
        let record = self.find_record(key)?.filter(|record| record.expires_at > milliseconds(self.now));
        let Some(record) = record else {
            let id = self.insert(pet)?;
            if let Ok(id) = id {
                self.insert_record(key, digest, id)?;
            }
            return Ok(id.map(|id| (id, false)));
        };
        if record.pet_digest != digest {
            return Ok(Err(AddPetError::IdempotencyMismatch));
        }
        Ok(self.parse(record.pet_id).map(|id| (id, true)))
    }

    /// The inner error is that of the row alone.
    fn insert(&mut self, pet: &NewPet) -> QueryResult<Result<PetId, AddPetError>> {
        let since_1970 = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let row = NewPetRow::from_pet(pet, i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX));
        let id = diesel::insert_into(pets::table).values(row).returning(pets::id).get_result(self.connection);
        match id {
            Ok(id) => Ok(self.parse(id)),
            Err(Error::NotFound) => {
                Ok(Err(self.failure(Error::QueryBuilderError("a trigger suppressed the row".into()))))
            }
            Err(error) if is_about_one_row(&error) => Ok(Err(self.failure(error))),
            Err(error) => Err(error),
        }
    }

    fn find_record(&mut self, key: &IdempotencyKey) -> QueryResult<Option<RecordRow>> {
        idempotency_keys::table
            .find((key.api_key().as_str(), &key.digest()[..]))
            .select(RecordRow::as_select())
            .first(self.connection)
            .optional()
    }

    /// Replaces the record of an expired key.
    fn insert_record(&mut self, key: &IdempotencyKey, pet_digest: Vec<u8>, id: PetId) -> QueryResult<()> {
        let expires_at = milliseconds(self.now + self.retention);
        let record = RecordRow { pet_digest, pet_id: id.get(), expires_at };
        let key = (
            idempotency_keys::api_key_id.eq(key.api_key().as_str()),
            idempotency_keys::key_digest.eq(&key.digest()[..]),
        );
        diesel::replace_into(idempotency_keys::table).values((key, record)).execute(self.connection).map(drop)
    }

    fn parse(&self, id: i64) -> Result<PetId, AddPetError> {
        PetId::parse(id).map_err(|error| self.failure(corrupt(&error)))
    }

    fn failure(&self, error: Error) -> AddPetError {
        AccessError::from(error).failure(self.file.path()).into()
    }
}

/// Whether the failure is about one row, which breaks a constraint. SQLite has undone the statement and goes on with
/// the transaction; after other failures, it may have rolled back the transaction.
fn is_about_one_row(error: &Error) -> bool {
    use DatabaseErrorKind::{CheckViolation, ForeignKeyViolation, NotNullViolation, UniqueViolation};
    let Error::DatabaseError(kind, _) = error else { return false };
    matches!(kind, UniqueViolation | CheckViolation | NotNullViolation | ForeignKeyViolation)
}
