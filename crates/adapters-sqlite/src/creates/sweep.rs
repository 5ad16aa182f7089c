//! Deletes the records of expired idempotency keys. Any number of processes may do so at once.

use std::time::SystemTime;

use diesel::prelude::*;

use crate::{
    SqliteFile,
    access::{AccessError, change},
    tables::idempotency_keys::dsl::{api_key_id, expires_at, idempotency_keys, key_digest},
    values::milliseconds,
};

/// Greatest number of records that one transaction deletes: creates wait for it.
pub(super) const BATCH_SIZE: usize = 1000;

/// Deletes the oldest expired records, at most [`BATCH_SIZE`], and returns their number.
pub(super) fn sweep(file: &SqliteFile, connection: &mut SqliteConnection) -> Result<usize, AccessError> {
    let expired = expires_at.le(milliseconds(SystemTime::now()));
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
