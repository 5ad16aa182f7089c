//! The statements of a batch.

use std::time::{Duration, SystemTime};

use animal_store_app::{
    IdempotencyKey, PetDigest,
    ports::{AddPet, AddPetError, AddedPet, StoreFailure},
};
use animal_store_domain::{NewPet, Pet, PetId};
use diesel::{OptionalExtension, QueryResult, SqliteConnection, prelude::*, result::Error, sqlite::Sqlite};

use super::add::AddResult;
use crate::{
    error::{is_about_one_row, storage_error},
    pet_row::NewPetRow,
    schema::tables::{idempotency_keys, pets},
};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = idempotency_keys, check_for_backend(Sqlite))]
struct RecordRow {
    pet_digest: Vec<u8>,
    pet_id: i64,
    /// In milliseconds since 1970.
    expires_at: i64,
}

/// Inserts pets, in a transaction of the caller's.
pub(super) struct Batch<'a> {
    connection: &'a mut SqliteConnection,
    /// Since 1970.
    now: Duration,
    retention: Duration,
}

impl<'a> Batch<'a> {
    pub(super) fn new(connection: &'a mut SqliteConnection, retention: Duration) -> Self {
        Self { connection, now: since_1970(), retention }
    }

    /// Adds a pet, or finds the pet of its idempotency key. The outer error is that of the batch, which has to be
    /// rolled back.
    pub(super) fn add(&mut self, AddPet { pet, idempotency_key }: AddPet) -> QueryResult<AddResult> {
        let Some(key) = idempotency_key else {
            return self.insert(&pet).map(|id| id.map(|id| AddedPet { pet: Pet::new(id, pet), replayed: false }));
        };
        let digest = PetDigest::from_pet(&pet).as_bytes().to_vec();
        let now = millis(self.now);
        let record = self.find_record(&key)?.filter(|record| record.expires_at > now);
        let Some(record) = record else {
            let id = self.insert(&pet)?;
            if let Ok(id) = id {
                self.insert_record(&key, digest, id)?;
            }
            return Ok(id.map(|id| AddedPet { pet: Pet::new(id, pet), replayed: false }));
        };
        if record.pet_digest != digest {
            return Ok(Err(AddPetError::IdempotencyMismatch));
        }
        let id = PetId::parse(record.pet_id).map_err(|error| StoreFailure::Corrupt(error.into()));
        Ok(id.map(|id| AddedPet { pet: Pet::new(id, pet), replayed: true }).map_err(AddPetError::from))
    }

    /// The inner error is that of the row alone.
    fn insert(&mut self, pet: &NewPet) -> QueryResult<Result<PetId, AddPetError>> {
        let row = NewPetRow::from_pet(pet, micros(self.now));
        let id = diesel::insert_into(pets::table).values(row).returning(pets::id).get_result(self.connection);
        match id {
            Ok(id) => Ok(PetId::parse(id).map_err(|error| StoreFailure::Corrupt(error.into()).into())),
            Err(Error::NotFound) => Ok(Err(storage_error("a trigger suppressed the row").into())),
            Err(error) if is_about_one_row(&error) => Ok(Err(storage_error(&error.to_string()).into())),
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
        let expires_at = millis(self.now + self.retention);
        let record = RecordRow { pet_digest, pet_id: id.get(), expires_at };
        let key = (
            idempotency_keys::api_key_id.eq(key.api_key().as_str()),
            idempotency_keys::key_digest.eq(&key.digest()[..]),
        );
        diesel::replace_into(idempotency_keys::table).values((key, record)).execute(self.connection).map(drop)
    }
}

pub(super) fn since_1970() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
