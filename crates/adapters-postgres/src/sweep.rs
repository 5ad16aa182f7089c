//! Deletes the records of expired idempotency keys. Any number of processes may do so at once.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use animal_store_adapter_kit::{ClockReadings, Outage, backoff};
use animal_store_app::ports::StoreResult;
use tokio::time::sleep;
use tokio_postgres::types::Type;

use crate::{
    connection::ConnectionSettings,
    transaction::{Database, Parameter, parse},
};

/// Longest pause between two sweeps, without the jitter of up to the same duration, by which processes do not sweep at
/// the same time.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Greatest number of records that one statement deletes.
const BATCH_SIZE: i64 = 1000;

/// Deletes the oldest records which expired at `$1` or later, and at `$2` or earlier, at most `$3`. Returns their number
/// and the latest expiry, with which the next batch does not scan the entries of all batches before it. Records that
/// another transaction has locked are skipped.
const DELETE_BATCH: &str = "
    WITH deleted AS (
        DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM idempotency_keys WHERE expires_at >= $1 AND expires_at <= $2
            ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
        ))
        RETURNING expires_at
    )
    SELECT count(*), max(expires_at) FROM deleted";

/// The commit does not wait for the disk: records that a crash restores are swept again.
const NO_WAIT: &str = "SET LOCAL synchronous_commit = off";

/// The pause after a batch is nine times the batch's duration, so that creates get the rest of the server.
const PAUSE_FACTOR: u32 = 9;

/// Sweeps periodically, each time on a new connection.
pub(crate) async fn sweep_periodically(mut connections: ConnectionSettings) {
    if connections
        .schema_ready
        .wait_for(|&ready| ready)
        .await
        .is_err()
    {
        return;
    }
    let pause = MAX_PAUSE.min(connections.postgres.idempotency_retention / 4);
    let mut outage = Outage::default();
    for pause in backoff(pause, pause) {
        sleep(pause).await;
        match sweep(&connections).await {
            Ok(records) => {
                outage.succeeded();
                if records > 0 {
                    tracing::debug!(records, "idempotency keys were swept");
                }
            }
            Err(failure) => {
                let address = &connections.endpoint;
                outage.failed(failure.reason(), |reason| {
                    tracing::warn!(%address, reason, "idempotency keys were not swept");
                });
            }
        }
    }
}

/// Deletes all records that expired by [`ClockReadings`], batch by batch, and returns their number.
async fn sweep(connections: &ConnectionSettings) -> StoreResult<i64> {
    let database = Database::of(connections);
    let connection = database.connect().await?;
    let readings = ClockReadings {
        table: "idempotency_readings",
        now: "(extract(epoch FROM now()) * 1000)::bigint",
        kept: database.settings.idempotency_retention,
    };
    let record = format!("{NO_WAIT}; {}", readings.record().join("; "));
    connection.begin(&record).await?;
    connection.commit().await?;
    let proof = format!("SELECT to_timestamp({} / 1000.0)", readings.proof());
    let until: Option<SystemTime> = parse(&connection.query_one(&proof, &[]).await?, 0)?;
    if until.is_none() {
        return Ok(0);
    }
    let mut from = UNIX_EPOCH;
    let mut records = 0;
    loop {
        let start = Instant::now();
        connection.begin(NO_WAIT).await?;
        let values: [Parameter<'_>; 3] = [
            (&from, Type::TIMESTAMPTZ),
            (&until, Type::TIMESTAMPTZ),
            (&BATCH_SIZE, Type::INT8),
        ];
        let batch = connection.query_one(DELETE_BATCH, &values).await?;
        connection.commit().await?;
        let deleted: i64 = parse(&batch, 0)?;
        records += deleted;
        match parse(&batch, 1)? {
            Some(last) if deleted == BATCH_SIZE => from = last,
            _ => return Ok(records),
        }
        sleep(start.elapsed() * PAUSE_FACTOR).await;
    }
}
