//! Deletes the records of expired idempotency keys. Any number of processes may do so at once.

use std::convert::Infallible;

use diesel::{SqliteConnection, prelude::*};

use super::batch::{millis, since_1970};
use crate::{
    SqliteFile,
    change::{AccessError, change},
    schema::tables::idempotency_keys::dsl::{api_key_id, expires_at, idempotency_keys, key_digest},
};

/// Greatest number of records that one transaction deletes: creates wait for it.
pub(super) const BATCH_SIZE: usize = 1000;

/// Deletes the oldest expired records, at most [`BATCH_SIZE`], and returns their number.
pub(super) fn sweep(file: &SqliteFile, connection: &mut SqliteConnection) -> Result<usize, AccessError<Infallible>> {
    let expired = expires_at.le(millis(since_1970()));
    let oldest =
        idempotency_keys.filter(expired).order(expires_at).limit(i64::try_from(BATCH_SIZE).unwrap_or(i64::MAX));
    let keys: Vec<(String, Vec<u8>)> = oldest.select((api_key_id, key_digest)).load(connection)?;
    if keys.is_empty() {
        return Ok(0);
    }
    change(file, connection, |connection| {
        let mut deleted = 0;
        for (api_key, key) in keys {
            // Another process may have replaced the record meanwhile.
            let record = idempotency_keys.find((api_key, key)).filter(expired);
            deleted += diesel::delete(record).execute(connection)?;
        }
        Ok(deleted)
    })
}
