//! Creates, and the statements that add a batch of them. A parameter of a statement has the values of a column. The
//! rows of its result are position, id, whether the pet is new, and whether it is the same pet.

use std::sync::Arc;

use animal_store_adapter_kit::queue::Request;
use animal_store_app::{PetDigest, ports::StoreFailure};
use animal_store_domain::{NewPet, PetId};
use tokio_postgres::Row;

use super::in_flight_keys::InFlightKey;
use crate::{
    PostgresSettings,
    batching::{Affected, Executed, Failure, Query},
    pet_row::{Array, COLUMNS, RECORD_COLUMNS, array_types, arrays, column_names, unnest},
};

/// Greatest number of pets in a batch.
pub(super) const MAX_BATCH: usize = 1000;

/// A pet to add.
pub(crate) struct Create {
    pub(super) pet: Arc<NewPet>,
    pub(super) in_flight: Option<InFlightKey>,
    /// Whether another process had locked the record of the key.
    pub(super) is_retry: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Response {
    Added(PetId),
    /// An earlier create with the key added this pet.
    Replayed(PetId),
    /// The key was used for another pet.
    Mismatch,
    /// Another process has locked the record of the key. Nothing was stored.
    Locked,
    /// Another process has locked a table. Nothing was stored.
    TableLocked,
}

impl Request for Create {
    type Response = Response;

    /// No other create waits for a locked record with the retry.
    fn is_alone(&self) -> bool {
        self.is_retry
    }
}

/// The values of the columns, for a batch.
pub(super) fn parameters<'a>(creates: &[&'a Create]) -> Vec<Array<'a>> {
    let mut pets = Vec::new();
    let mut api_keys = Vec::new();
    let mut key_digests = Vec::new();
    let mut pet_digests = Vec::new();
    for create in creates {
        pets.push(&*create.pet);
        if let Some(InFlightKey { key, .. }) = &create.in_flight {
            api_keys.push(key.api_key.as_str());
            key_digests.push(&key.digest[..]);
            pet_digests.push(PetDigest::from_pet(&create.pet).0.to_vec());
        }
    }
    let mut arrays = arrays(&pets);
    if !api_keys.is_empty() {
        arrays.push(Box::new(api_keys));
        arrays.push(Box::new(key_digests));
        arrays.push(Box::new(pet_digests));
    }
    arrays
}

/// Ids ascend with the positions. The id of a create is found by its position, because the order of RETURNING is not
/// guaranteed. A row that a trigger suppressed is missing; a row whose id a trigger changed has no position.
pub(super) fn plain_statement() -> Query {
    let pet = column_names(COLUMNS);
    let given = unnest(COLUMNS);
    let text = format!(
        "WITH given AS MATERIALIZED (
            SELECT nextval('pets_id_seq') AS id, given.* FROM {given}
        ), stored AS (
            INSERT INTO pets (id, {pet}) SELECT id, {pet} FROM given
            RETURNING id
        )
        SELECT ordinal, id, true, true FROM stored LEFT JOIN given USING (id)"
    );
    Query {
        text,
        types: array_types(COLUMNS),
    }
}

/// Inserts the records, then the pets of new records. Every process locks records in the same order, so that no two
/// wait for each other.
pub(super) fn keyed_statement(settings: &PostgresSettings) -> Query {
    let columns = [COLUMNS, &RECORD_COLUMNS[..3]].concat();
    let pet = column_names(COLUMNS);
    let given = unnest(&columns);
    let retention = settings.idempotency_retention.as_millis();
    let text = format!(
        "WITH given AS MATERIALIZED (
            SELECT nextval('pets_id_seq') AS id, given.* FROM {given}
        ), record AS (
            -- If another transaction is inserting the same record, this waits for its end. An existing record is
            -- updated to itself, because only written rows are returned, in their current version and not in that
            -- of the statement's snapshot. An expired record is replaced.
            INSERT INTO idempotency_keys AS found (api_key_id, key_digest, pet_digest, pet_id, expires_at)
            SELECT api_key_id, key_digest, pet_digest, id, now() + interval '1 millisecond' * {retention}
            FROM given ORDER BY api_key_id COLLATE \"C\", key_digest
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
    );
    Query {
        text,
        types: array_types(&columns),
    }
}

/// Returns the responses to a batch of this size, from the rows of its statement. `None` if a row is not valid.
pub(super) fn responses(rows: &[Row], batch_size: usize) -> Option<Executed<Create>> {
    let suppressed = StoreFailure::Unavailable("a trigger suppressed the row".into());
    let suppressed = Failure::new(suppressed, Affected::Batch);
    let mut responses = vec![Err(suppressed); batch_size];
    for row in rows {
        let position: i64 = row.try_get(0).ok()?;
        let index = usize::try_from(position - 1).ok()?;
        *responses.get_mut(index)? = Ok(response(row)?);
    }
    Some(responses)
}

fn response(row: &Row) -> Option<Response> {
    let id = PetId::parse(row.try_get(1).ok()?).ok()?;
    let is_new: bool = row.try_get(2).ok()?;
    let is_same_pet: bool = row.try_get(3).ok()?;
    Some(if !is_same_pet {
        Response::Mismatch
    } else if is_new {
        Response::Added(id)
    } else {
        Response::Replayed(id)
    })
}
