//! Records of idempotency keys.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{ClockReadings, idempotency_record};
use animal_store_app::{IdempotencyKey, from_milliseconds, milliseconds, ports::IdempotencyRecord};
use diesel::{
    connection::SimpleConnection,
    dsl::sql,
    prelude::*,
    sql_query,
    sql_types::{Binary, Bool, Text},
};

use self::idempotency_keys::{api_key_id, expires_at, key_digest, table};
use crate::error::corrupt;

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

#[derive(Queryable, Insertable)]
#[diesel(table_name = idempotency_keys)]
pub(crate) struct RecordRow {
    api_key_id: String,
    key_digest: Vec<u8>,
    pub(super) pet_digest: Vec<u8>,
    pub(super) pet_id: i64,
    expires_at: i64,
}

/// Returns the record of a key that has not expired.
pub(crate) fn find(
    connection: &mut SqliteConnection,
    key: &IdempotencyKey,
    now: SystemTime,
) -> QueryResult<Option<RecordRow>> {
    table
        .find((key.api_key.as_str(), &key.digest[..]))
        .filter(expires_at.gt(milliseconds(now)))
        .first(connection)
        .optional()
}

/// Adds a record of a key that [`find`] did not find: it replaces one that has expired. Diesel would prepare an
/// `ON CONFLICT … DO UPDATE` again for each record, and `REPLACE` changes what the statements of a trigger do.
pub(crate) fn add(
    connection: &mut SqliteConnection,
    record: &IdempotencyRecord,
) -> QueryResult<()> {
    diesel::delete(table.find((record.key.api_key.as_str(), &record.key.digest[..])))
        .execute(connection)?;
    let row = RecordRow {
        api_key_id: record.key.api_key.to_string(),
        key_digest: record.key.digest.to_vec(),
        pet_digest: record.pet_digest.0.to_vec(),
        pet_id: record.pet_id.get(),
        expires_at: milliseconds(record.expires_at),
    };
    diesel::insert_into(table)
        .values(&row)
        .execute(connection)?;
    Ok(())
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
    let rows: Vec<RecordRow> = table
        .filter(greater.and(expires_at.gt(milliseconds(now))))
        .order((api_key_id, key_digest))
        .limit(limit)
        .load(connection)?;
    rows.into_iter().map(RecordRow::record).collect()
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

impl RecordRow {
    fn record(self) -> QueryResult<IdempotencyRecord> {
        idempotency_record(
            &self.api_key_id,
            &self.key_digest,
            &self.pet_digest,
            self.pet_id,
            from_milliseconds(self.expires_at),
        )
        .map_err(corrupt)
    }
}
