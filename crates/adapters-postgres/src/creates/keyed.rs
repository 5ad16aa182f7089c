//! A create with an idempotency key: one statement stores its record and its pet, or neither.

use std::cmp::Ordering;

use animal_store_app::{
    PetDigest,
    ports::{AddPetError, AddedPet},
};
use animal_store_domain::{NewPet, Pet, PetId};
use tokio_postgres::{Row, types::Type};

use super::{
    add_request::{AddRequest, AddResult},
    in_flight_keys::InFlightKey,
};
use crate::{
    PostgresSettings,
    pet_row::{Array, COLUMNS, arrays},
    unnest::{column_names, unnest},
};

pub(super) struct KeyedAdd {
    pub(super) pet: NewPet,
    pub(super) in_flight: InFlightKey,
}

/// The record of a key, as this request or an earlier one made it.
pub(super) struct KeyRecord {
    pet_id: PetId,
    new: bool,
    same_pet: bool,
}

const RECORD_COLUMNS: [(&str, Type); 3] =
    [("api_key_id", Type::TEXT_ARRAY), ("key_digest", Type::BYTEA_ARRAY), ("pet_digest", Type::BYTEA_ARRAY)];

impl AddRequest for KeyedAdd {
    const PURPOSE: &'static str = "creates with a key";

    type Stored = KeyRecord;

    fn columns() -> Vec<(&'static str, Type)> {
        [COLUMNS.as_slice(), &RECORD_COLUMNS].concat()
    }

    /// Inserts the records, then the pets of new records.
    fn statement(settings: &PostgresSettings) -> String {
        let (pet, given) = (column_names(&COLUMNS), unnest(&Self::columns()));
        let retention = settings.idempotency_retention.as_millis();
        format!(
            "WITH given AS MATERIALIZED (
                SELECT nextval('pets_id_seq') AS id, given.* FROM {given}
            ), record AS (
                -- If another transaction is inserting the same record, this waits for its end. An existing record is
                -- updated to itself, because only written rows are returned, in their current version and not in that
                -- of the statement's snapshot. An expired record is replaced.
                INSERT INTO idempotency_keys AS found (api_key_id, key_digest, pet_digest, pet_id, expires_at)
                SELECT api_key_id, key_digest, pet_digest, id, now() + interval '1 millisecond' * {retention}
                FROM given ORDER BY ordinal
                ON CONFLICT (api_key_id, key_digest) DO UPDATE SET
                    pet_digest = CASE WHEN found.expires_at > now() THEN found.pet_digest ELSE excluded.pet_digest END,
                    pet_id = CASE WHEN found.expires_at > now() THEN found.pet_id ELSE excluded.pet_id END,
                    expires_at = CASE WHEN found.expires_at > now() THEN found.expires_at ELSE excluded.expires_at END
                RETURNING api_key_id, key_digest, pet_digest, pet_id
            ), stored AS (
                INSERT INTO pets (id, {pet})
                SELECT id, {pet} FROM given JOIN record USING (api_key_id, key_digest)
                WHERE pet_id = id
                RETURNING id
            )
            -- A record must not stay if a trigger suppressed its pet: a text that is not a number is a data exception
            -- (22P02), which rolls back the statement and splits the batch.
            SELECT ordinal,
                CASE WHEN pet_id <> given.id OR stored.id IS NOT NULL THEN pet_id
                    ELSE ('a trigger suppressed the row of pet ' || pet_id)::bigint END,
                pet_id = given.id,
                record.pet_digest = given.pet_digest
            FROM record JOIN given USING (api_key_id, key_digest) LEFT JOIN stored ON stored.id = given.id"
        )
    }

    /// A request that waits for the record of another process must not use up the timeout of the others in its batch.
    fn setting(settings: &PostgresSettings) -> Option<String> {
        Some(format!("lock_timeout = {}", (settings.timeout / 4).as_millis().max(1)))
    }

    /// Every process locks records in the same order, so that no two wait for each other.
    fn lock_order(one: &Self, other: &Self) -> Ordering {
        one.in_flight.key.cmp(&other.in_flight.key)
    }

    fn arrays<'a>(requests: &[&'a Self]) -> Vec<Array<'a>> {
        let mut arrays = arrays(requests.iter().map(|request| &request.pet));
        let api_keys: Vec<_> = requests.iter().map(|request| request.in_flight.key.api_key().as_str()).collect();
        let key_digests: Vec<_> = requests.iter().map(|request| &request.in_flight.key.digest()[..]).collect();
        let pet_digests: Vec<_> =
            requests.iter().map(|request| PetDigest::from_pet(&request.pet).as_bytes().to_vec()).collect();
        arrays.extend([Box::new(api_keys) as Array<'a>, Box::new(key_digests), Box::new(pet_digests)]);
        arrays
    }

    fn stored(row: &Row) -> Option<KeyRecord> {
        let pet_id = PetId::parse(row.try_get(1).ok()?).ok()?;
        Some(KeyRecord { pet_id, new: row.try_get(2).ok()?, same_pet: row.try_get(3).ok()? })
    }

    fn added(self, KeyRecord { pet_id, new, same_pet }: KeyRecord) -> AddResult {
        if same_pet {
            Ok(AddedPet { pet: Pet::new(pet_id, self.pet), replayed: !new })
        } else {
            Err(AddPetError::IdempotencyMismatch)
        }
    }
}
