//! Deletes the records of expired idempotency keys. Any number of processes may do so at once.

use std::time::{Duration, Instant};

use animal_store_adapter_kit::{Outage, backoff};
use tokio::time::sleep;
use tokio_postgres::SimpleQueryMessage;

use crate::{PostgresSettings, connection::ConnectionSettings, error::ConnectionError};

/// Longest pause between two sweeps, without the jitter of up to the same duration, by which processes do not sweep at
/// the same time.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Greatest number of records that one statement deletes.
const BATCH_SIZE: usize = 1000;

/// The pause after a batch is nine times the batch's duration, so that creates get the rest of the server.
const PAUSE_FACTOR: u32 = 9;

/// Sweeps periodically, each time on a new connection.
pub(crate) async fn sweep_periodically(mut connections: ConnectionSettings) {
    if connections.schema_ready.wait_for(|&ready| ready).await.is_err() {
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
            Err(error) => {
                let address = &connections.endpoint;
                outage.failed(error.to_string(), |reason| {
                    tracing::warn!(%address, reason, "idempotency keys were not swept");
                });
            }
        }
    }
}

/// Deletes all expired records, batch by batch, and returns their number.
async fn sweep(connections: &ConnectionSettings) -> Result<usize, ConnectionError> {
    let (client, _task) = connections.endpoint.connect(connections.postgres.connect_timeout).await?;
    let (mut from, mut records) = ("-infinity".to_owned(), 0);
    loop {
        let start = Instant::now();
        let batch = delete_batch(&connections.postgres, &from);
        let messages = connections.endpoint.within(connections.postgres.timeout, client.simple_query(&batch)).await?;
        let mut rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((row.get(0)?.parse::<usize>().ok()?, row.get(1))),
            _ => None,
        });
        let (deleted, last) = rows.next().ok_or(ConnectionError::Unexpected)?;
        records += deleted;
        match last {
            Some(last) if deleted == BATCH_SIZE => from = last.to_owned(),
            _ => return Ok(records),
        }
        sleep(start.elapsed() * PAUSE_FACTOR).await;
    }
}

/// Returns the statements that delete the oldest records which expired at `from` or later. The result is their number
/// and the latest expiry.
///
/// Records that another transaction has locked are skipped. The commit does not wait for the disk: records that a
/// crash restores are swept again. It is one message, which works through any pooler. `from` keeps each batch from
/// scanning the entries of all batches before it; a time in ISO style is read correctly under any settings.
fn delete_batch(settings: &PostgresSettings, from: &str) -> String {
    let settings = settings.set_statements("SET LOCAL");
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; {settings};
        SET LOCAL synchronous_commit = off; SET LOCAL DateStyle = ISO;
        WITH deleted AS (
            DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM idempotency_keys
                WHERE expires_at >= '{from}' AND expires_at <= now()
                ORDER BY expires_at LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED
            ))
            RETURNING expires_at
        )
        SELECT count(*), max(expires_at) FROM deleted; COMMIT"
    )
}
