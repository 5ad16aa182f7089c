//! Records of idempotency keys.

use std::time::SystemTime;

use animal_store_app::{ApiKeyId, IdempotencyKey, PetDigest, ports::IdempotencyRecord};
use animal_store_domain::PetId;
use diesel::{
    dsl::sql,
    prelude::*,
    query_dsl::methods::FilterDsl,
    sql_types::{Binary, Bool, Text},
};

use crate::{
    access::corrupt,
    tables::idempotency_keys,
    values::{from_milliseconds, milliseconds},
};

/// The columns, in the order of the table.
type Row = (String, Vec<u8>, Vec<u8>, i64, i64);

/// Returns the first `limit` records with greater keys that expire after `now`, in ascending order of their keys.
pub(super) fn read(
    connection: &mut SqliteConnection,
    after: Option<&IdempotencyKey>,
    limit: i64,
    now: SystemTime,
) -> QueryResult<Vec<IdempotencyRecord>> {
    use idempotency_keys::{api_key_id, expires_at, key_digest, table};
    let (api_key, digest) = after.map_or(("", &[][..]), |key| (key.api_key().as_str(), &key.digest()[..]));
    // A comparison of both columns at once is one range of the primary key.
    let greater = sql::<Bool>("(api_key_id, key_digest) > (").bind::<Text, _>(api_key).sql(", ");
    let greater = greater.bind::<Binary, _>(digest).sql(")");
    let page = QueryDsl::filter(table, greater.and(expires_at.gt(milliseconds(now))));
    let rows: Vec<Row> = page.order((api_key_id, key_digest)).limit(limit).load(connection)?;
    rows.into_iter().map(parse).collect()
}

/// Adds the records whose keys do not exist, or have expired.
pub(super) fn add(connection: &mut SqliteConnection, records: &[IdempotencyRecord]) -> QueryResult<()> {
    use idempotency_keys::{api_key_id, expires_at, key_digest, pet_digest, pet_id, table};
    let now = milliseconds(SystemTime::now());
    for record in records {
        let key = (api_key_id.eq(record.key.api_key().as_str()), key_digest.eq(&record.key.digest()[..]));
        let content = (
            pet_digest.eq(&record.pet_digest.as_bytes()[..]),
            pet_id.eq(record.pet_id.get()),
            expires_at.eq(milliseconds(record.expires_at)),
        );
        let insertion = diesel::insert_into(table).values((key, content)).on_conflict((api_key_id, key_digest));
        FilterDsl::filter(insertion.do_update().set(content), expires_at.le(now)).execute(connection)?;
    }
    Ok(())
}

fn parse((api_key, key_digest, pet_digest, pet_id, expires_at): Row) -> QueryResult<IdempotencyRecord> {
    let corrupt = |column| corrupt(format!("table idempotency_keys, API key {api_key:?}, column {column}"));
    let api_key_id = ApiKeyId::parse(&api_key).map_err(|_| corrupt("api_key_id"))?;
    let pet_digest = pet_digest.try_into().map_err(|_| corrupt("pet_digest"))?;
    Ok(IdempotencyRecord {
        key: IdempotencyKey::from_parts(api_key_id, key_digest.try_into().map_err(|_| corrupt("key_digest"))?),
        pet_digest: PetDigest::from_bytes(pet_digest),
        pet_id: PetId::parse(pet_id).map_err(|_| corrupt("pet_id"))?,
        expires_at: from_milliseconds(expires_at),
    })
}
