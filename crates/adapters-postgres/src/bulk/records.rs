//! The records of idempotency keys, in bulk.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::{
    ApiKeyId, IdempotencyKey, PetDigest,
    ports::{Cause, IdempotencyRecord, StoreFailure},
};
use animal_store_domain::PetId;
use tokio_postgres::{Row, types::Type};

use super::connection::{BulkConnection, Parameter};
use crate::unnest::{column_names, unnest};

const COLUMNS: [(&str, Type); 5] = [
    ("api_key_id", Type::TEXT_ARRAY),
    ("key_digest", Type::BYTEA_ARRAY),
    ("pet_digest", Type::BYTEA_ARRAY),
    ("pet_id", Type::INT8_ARRAY),
    ("expires_at", Type::TIMESTAMPTZ_ARRAY),
];

/// Returns the first records with keys greater than `after` that had not expired when the snapshot began.
pub(super) async fn page(
    connection: &BulkConnection,
    after: Option<IdempotencyKey>,
    limit: usize,
) -> Result<Vec<IdempotencyRecord>, StoreFailure> {
    let select = format!(
        "SELECT {} FROM idempotency_keys WHERE (api_key_id, key_digest) > ($1, $2) AND expires_at > now()
        ORDER BY api_key_id, key_digest LIMIT $3",
        column_names(&COLUMNS)
    );
    let (api_key, digest) = after.as_ref().map_or(("", [].as_slice()), |key| (key.api_key().as_str(), key.digest()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters = [(&api_key as _, Type::TEXT), (&digest as _, Type::BYTEA), (&limit as _, Type::INT8)];
    let rows = connection.query(&select, &parameters).await?;
    rows.iter().map(|row| parse(row).map_err(StoreFailure::Corrupt)).collect()
}

/// Adds records. Like creates, it locks records in the order of their keys and replaces expired ones.
pub(super) async fn add(connection: &BulkConnection, mut records: Vec<IdempotencyRecord>) -> Result<(), StoreFailure> {
    records.sort_by(|one, other| one.key.cmp(&other.key));
    records.dedup_by(|one, other| one.key == other.key);
    let (columns, given) = (column_names(&COLUMNS), unnest(&COLUMNS));
    let insert = format!(
        "INSERT INTO idempotency_keys AS found ({columns}) SELECT {columns} FROM {given} ORDER BY ordinal
        ON CONFLICT (api_key_id, key_digest) DO UPDATE SET
            pet_digest = excluded.pet_digest, pet_id = excluded.pet_id, expires_at = excluded.expires_at
        WHERE found.expires_at <= now()"
    );
    let api_keys: Vec<_> = records.iter().map(|record| record.key.api_key().as_str()).collect();
    let key_digests: Vec<_> = records.iter().map(|record| record.key.digest().as_slice()).collect();
    let pet_digests: Vec<_> = records.iter().map(|record| record.pet_digest.as_bytes().as_slice()).collect();
    let pet_ids: Vec<_> = records.iter().map(|record| record.pet_id.get()).collect();
    let expiries: Vec<_> = records.iter().map(|record| record.expires_at).collect();
    let values = [&api_keys as _, &key_digests as _, &pet_digests as _, &pet_ids as _, &expiries as _];
    let parameters: Vec<Parameter<'_>> = values.into_iter().zip(COLUMNS.map(|(_, array)| array)).collect();
    connection.begin("").await?;
    connection.write(&insert, &parameters).await?;
    connection.commit().await
}

fn parse(row: &Row) -> Result<IdempotencyRecord, Cause> {
    let (api_key, key_digest): (&str, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
    let (pet_digest, pet_id): (&[u8], i64) = (row.try_get(2)?, row.try_get(3)?);
    let invalid = |column| format!("table idempotency_keys, API key {api_key}, pet {pet_id}: {column} is not valid");
    let api_key_id = ApiKeyId::parse(api_key).map_err(|_| invalid("api_key_id"))?;
    let key_digest = key_digest.try_into().map_err(|_| invalid("key_digest"))?;
    Ok(IdempotencyRecord {
        key: IdempotencyKey::from_parts(api_key_id, key_digest),
        pet_digest: PetDigest::from_bytes(pet_digest.try_into().map_err(|_| invalid("pet_digest"))?),
        pet_id: PetId::parse(pet_id).map_err(|_| invalid("pet_id"))?,
        expires_at: to_millisecond(row.try_get(4)?).ok_or_else(|| invalid("expires_at"))?,
    })
}

/// Rounds down to a millisecond. `None` before 1970.
fn to_millisecond(time: SystemTime) -> Option<SystemTime> {
    let milliseconds = time.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(UNIX_EPOCH + Duration::from_millis(milliseconds.try_into().ok()?))
}
