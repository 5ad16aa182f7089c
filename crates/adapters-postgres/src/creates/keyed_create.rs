//! A create with an idempotency key: its record and its animal are stored by one statement, or neither is.

use std::cmp::Ordering;

use animal_store_app::ports::{AddPetError, AddedPet};
use animal_store_domain::{NewPet, Pet, PetId};
use sha2::{Digest, Sha256};
use tokio_postgres::{Row, types::Type};

use super::{busy_keys::BusyKey, plain_create};
use crate::{
    PostgresSettings,
    group_commit::{Answer, Column, Create},
    pet_row::code,
};

/// A create with an idempotency key, which nobody else in this process has now.
pub(super) struct KeyedCreate {
    pub(super) pet: NewPet,
    pub(super) key: BusyKey,
}

/// What the key's record says, whoever made it.
pub(super) struct Outcome {
    id: PetId,
    /// Whether this create made it.
    new: bool,
    /// Whether it is about the same animal.
    same: bool,
}

impl Create for KeyedCreate {
    const PURPOSE: &'static str = "creates with a key";

    const TYPES: &'static [Type] =
        &[Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT2_ARRAY, Type::TEXT_ARRAY, Type::BYTEA_ARRAY, Type::BYTEA_ARRAY];

    type Outcome = Outcome;

    /// Records first, then the animals of those that are new.
    fn statement(settings: &PostgresSettings) -> String {
        let retention = settings.idempotency_retention.as_millis();
        format!(
            "WITH given AS MATERIALIZED (
                SELECT nextval('pets_id_seq') AS id, given.*
                FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::text[], $5::bytea[], $6::bytea[])
                    WITH ORDINALITY AS given (name, category_id, status, api_key_id, key_digest, pet_digest, ordinal)
            ), record AS (
                -- Where another transaction is making the same record, this waits for its end. One that is found is
                -- written again as it is: only what was written is returned, as it is now and not as it was when the
                -- statement began. One whose time is over is taken anew.
                INSERT INTO idempotency_keys AS found (api_key_id, key_digest, pet_digest, pet_id, expires_at)
                SELECT api_key_id, key_digest, pet_digest, id, now() + interval '1 millisecond' * {retention}
                FROM given ORDER BY ordinal
                ON CONFLICT (api_key_id, key_digest) DO UPDATE SET
                    pet_digest = CASE WHEN found.expires_at > now() THEN found.pet_digest ELSE excluded.pet_digest END,
                    pet_id = CASE WHEN found.expires_at > now() THEN found.pet_id ELSE excluded.pet_id END,
                    expires_at = CASE WHEN found.expires_at > now() THEN found.expires_at ELSE excluded.expires_at END
                RETURNING api_key_id, key_digest, pet_digest, pet_id
            ), stored AS (
                INSERT INTO pets (id, name, category_id, status)
                SELECT id, name, category_id, status FROM given JOIN record USING (api_key_id, key_digest)
                WHERE pet_id = id
                RETURNING id
            )
            -- A record without its animal, which a trigger kept out, must not stay: a text that is no number is a data
            -- exception (22P02), which undoes the statement and takes the batch apart.
            SELECT ordinal,
                CASE WHEN pet_id <> given.id OR stored.id IS NOT NULL THEN pet_id
                    ELSE ('a trigger kept animal ' || pet_id || ' out of the table')::bigint END,
                pet_id = given.id,
                record.pet_digest = given.pet_digest
            FROM record JOIN given USING (api_key_id, key_digest) LEFT JOIN stored ON stored.id = given.id"
        )
    }

    /// One that waits for a record of somebody else's must not take the time of the others in its batch.
    fn setting(settings: &PostgresSettings) -> Option<String> {
        Some(format!("lock_timeout = {}", (settings.timeout / 4).as_millis().max(1)))
    }

    /// In which order records are locked: the same in every process, so that no two wait for each other.
    fn order(one: &Self, other: &Self) -> Ordering {
        one.key.cmp(&other.key)
    }

    fn columns<'a>(creates: &[&'a Self]) -> Vec<Column<'a>> {
        let mut columns = plain_create::columns(creates.iter().map(|create| &create.pet));
        let api_keys: Vec<_> = creates.iter().map(|create| create.key.api_key().as_str()).collect();
        let key_digests: Vec<_> = creates.iter().map(|create| &create.key.digest()[..]).collect();
        let pet_digests: Vec<_> = creates.iter().map(|create| digest(&create.pet).to_vec()).collect();
        columns.extend([Box::new(api_keys) as Column<'a>, Box::new(key_digests), Box::new(pet_digests)]);
        columns
    }

    fn outcome(row: &Row) -> Option<Outcome> {
        let id = PetId::parse(row.try_get(1).ok()?).ok()?;
        Some(Outcome { id, new: row.try_get(2).ok()?, same: row.try_get(3).ok()? })
    }

    fn answer(self, Outcome { id, new, same }: Outcome) -> Answer {
        if same {
            Ok(AddedPet { pet: Pet::new(id, self.pet), replayed: !new })
        } else {
            Err(AddPetError::IdempotencyMismatch)
        }
    }
}

/// Stored, so it must never change. What becomes a part of animals later goes behind the name and a zero, which no name
/// has, and only where it is given: animals without it keep their digest.
fn digest(pet: &NewPet) -> [u8; 32] {
    Sha256::new()
        .chain_update(pet.category_id().get().to_be_bytes())
        .chain_update(pet.status().map_or(0, code).to_be_bytes())
        .chain_update(pet.name().as_str())
        .finalize()
        .into()
}

#[cfg(test)]
mod plans;

#[cfg(test)]
mod tests {
    use animal_store_domain::{CategoryId, PetName, PetStatus};

    use super::*;

    fn pet(name: &str, category: i64, status: Option<PetStatus>) -> NewPet {
        NewPet::new(PetName::parse(name).unwrap(), CategoryId::new(category)).with_status(status)
    }

    /// It is in the records of every database.
    #[test]
    fn the_digest_of_an_animal_never_changes() {
        assert_eq!(digest(&pet("Rex", 1, Some(PetStatus::Sold)))[..4], [0x80, 0xe0, 0xd1, 0xba]);
        assert_eq!(digest(&pet("Rex", 1, None))[..4], [0x70, 0x9b, 0x92, 0xc3]);
    }

    #[test]
    fn animals_that_differ_have_other_digests() {
        let rex = digest(&pet("Rex", 1, None));
        for other in
            [pet("Re", 1, None), pet("Rex", -1, None), pet("Rex", 256, None), pet("Rex", 1, Some(PetStatus::Available))]
        {
            assert_ne!(digest(&other), rex);
        }
    }
}
