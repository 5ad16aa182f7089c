//! Records of idempotency keys.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{ClockReadings, idempotency_record};
use animal_store_app::{IdempotencyKey, ports::IdempotencyRecord};
use diesel::{
    connection::SimpleConnection,
    dsl::sql,
    prelude::*,
    query_dsl::methods::FilterDsl,
    sql_query,
    sql_types::{Binary, Bool, Text},
};

use crate::{
    error::corrupt,
    values::{from_milliseconds, milliseconds},
};

use self::idempotency_keys::{api_key_id, expires_at, key_digest, pet_digest, pet_id, table};

diesel::table! {
    idempotency_keys (api_key_id, key_digest) {
        api_key_id -> Text,
        key_digest -> Binary,
        pet_digest -> Binary,
        pet_id -> BigInt,
        expires_at -> BigInt,
    }
}

/// Greatest number of expired records that one transaction deletes: creates wait for it.
pub(super) const SWEEP_SIZE: usize = 1000;

/// The columns, in the order of the table.
type Row = (String, Vec<u8>, Vec<u8>, i64, i64);

/// The pet of an idempotency key.
#[derive(Queryable)]
pub(super) struct KeyedPet {
    pub(super) pet_digest: Vec<u8>,
    pub(super) pet_id: i64,
}

/// Returns the pet of a key that has not expired.
pub(super) fn find(
    connection: &mut SqliteConnection,
    key: &IdempotencyKey,
    now: SystemTime,
) -> QueryResult<Option<KeyedPet>> {
    let record = QueryDsl::find(table, (key.api_key.as_str(), &key.digest[..]));
    let record = QueryDsl::filter(record, expires_at.gt(milliseconds(now)));
    record
        .select((pet_digest, pet_id))
        .first(connection)
        .optional()
}

/// Adds a record, unless its key exists and has not expired.
pub(crate) fn add(
    connection: &mut SqliteConnection,
    record: &IdempotencyRecord,
    now: SystemTime,
) -> QueryResult<()> {
    let key = (
        api_key_id.eq(record.key.api_key.as_str()),
        key_digest.eq(&record.key.digest[..]),
    );
    let content = (
        pet_digest.eq(&record.pet_digest.0[..]),
        pet_id.eq(record.pet_id.get()),
        expires_at.eq(milliseconds(record.expires_at)),
    );
    let insertion = diesel::insert_into(table)
        .values((key, content))
        .on_conflict((api_key_id, key_digest));
    let insertion = FilterDsl::filter(
        insertion.do_update().set(content),
        expires_at.le(milliseconds(now)),
    );
    insertion.execute(connection).map(drop)
}

/// Returns the first `limit` records with greater keys that expire after `now`, in ascending order of their keys.
pub(crate) fn list(
    connection: &mut SqliteConnection,
    after: Option<&IdempotencyKey>,
    limit: i64,
    now: SystemTime,
) -> QueryResult<Vec<IdempotencyRecord>> {
    let (api_key, digest) =
        after.map_or(("", &[][..]), |key| (key.api_key.as_str(), &key.digest[..]));
    // A comparison of both columns at once is one range of the primary key.
    let greater = sql::<Bool>("(api_key_id, key_digest) > (")
        .bind::<Text, _>(api_key)
        .sql(", ");
    let greater = greater.bind::<Binary, _>(digest).sql(")");
    let page = QueryDsl::filter(table, greater.and(expires_at.gt(milliseconds(now))));
    let rows: Vec<Row> = page
        .order((api_key_id, key_digest))
        .limit(limit)
        .load(connection)?;
    rows.into_iter().map(parse).collect()
}

/// Deletes the oldest records that expired by [`ClockReadings`], at most [`SWEEP_SIZE`], and returns their number. Any
/// number of processes may do so at once.
pub(super) fn sweep(connection: &mut SqliteConnection, retention: Duration) -> QueryResult<usize> {
    let readings = ClockReadings {
        table: "idempotency_readings",
        now: milliseconds(SystemTime::now()),
        kept: retention,
    };
    connection.batch_execute(&readings.record().join(";"))?;
    let proof = readings.proof();
    let expired = sql_query(format!(
        "DELETE FROM idempotency_keys WHERE (api_key_id, key_digest) IN (SELECT api_key_id, key_digest
         FROM idempotency_keys WHERE expires_at <= {proof} ORDER BY expires_at LIMIT {SWEEP_SIZE})"
    ));
    expired.execute(connection)
}

fn parse((api_key, key, pet, id, expires): Row) -> QueryResult<IdempotencyRecord> {
    let expires = from_milliseconds(expires);
    idempotency_record(&api_key, &key, &pet, id, expires).map_err(corrupt)
}
