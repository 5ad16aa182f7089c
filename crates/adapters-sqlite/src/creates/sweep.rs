//! Deletes the records of expired idempotency keys. Any number of processes may do so at once.

use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection, prelude::*};

use super::batch::{millis, since_1970};
use crate::schema::tables::idempotency_keys::dsl::{api_key_id, expires_at, idempotency_keys, key_digest};

/// Greatest number of records that one transaction deletes: creates wait for it.
pub(super) const BATCH_SIZE: usize = 1000;

/// Deletes the oldest expired records, at most [`BATCH_SIZE`], and returns their number.
pub(super) fn sweep(connection: &mut SqliteConnection) -> QueryResult<usize> {
    let expired = expires_at.le(millis(since_1970()));
    let oldest =
        idempotency_keys.filter(expired).order(expires_at).limit(i64::try_from(BATCH_SIZE).unwrap_or(i64::MAX));
    let keys: Vec<(String, Vec<u8>)> = oldest.select((api_key_id, key_digest)).load(connection)?;
    if keys.is_empty() {
        return Ok(0);
    }
    // The writer waits for the lock 1 ms at a time.
    connection.batch_execute("PRAGMA busy_timeout = 1000")?;
    connection.immediate_transaction(|connection| {
        let mut deleted = 0;
        for (api_key, key) in keys {
            // Another process may have replaced the record meanwhile.
            let record = idempotency_keys.find((api_key, key)).filter(expired);
            deleted += diesel::delete(record).execute(connection)?;
        }
        Ok(deleted)
    })
}
