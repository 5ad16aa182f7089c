//! Deletes the records of idempotency keys whose time is over. Any number of processes may do so at once.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ConstantBuilder};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::{
    PostgresSettings,
    endpoint::Driver,
    error::ConnectionError,
    link::{Opener, Session},
};

/// Between two sweeps, at most; a random part of as much again is added, so that processes do not sweep together.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// The most records that one statement deletes.
const MAX_RECORDS: usize = 1000;

/// After a batch it waits so many times as long as that took: creates get the rest of the server.
const REST: u32 = 9;

/// Sweeps from time to time, on a connection that is opened for that.
pub(crate) struct Sweep {
    opener: Opener,
    settings: PostgresSettings,
}

struct Sweeping(Client);

impl Session for Sweeping {
    const PURPOSE: &'static str = "sweep";

    type Settings = ();

    async fn begin(client: Client, (): &()) -> Result<Self, ConnectionError> {
        Ok(Self(client))
    }
}

impl Sweep {
    pub(crate) fn new(opener: Opener, settings: &PostgresSettings) -> Self {
        Self { opener, settings: settings.clone() }
    }

    pub(crate) async fn run(mut self) {
        if self.opener.schema.wait_for(|&ready| ready).await.is_err() {
            return;
        }
        let pause = MAX_PAUSE.min(self.settings.idempotency_retention / 4);
        let pauses = ConstantBuilder::new().with_delay(pause).without_max_times().with_jitter().build();
        let mut last_complaint = String::new();
        for pause in pauses {
            sleep(pause).await;
            match self.sweep().await {
                Ok(0) => last_complaint.clear(),
                Ok(records) => {
                    tracing::debug!(records, "idempotency keys were swept");
                    last_complaint.clear();
                }
                Err(error) => {
                    let reason = error.to_string();
                    if reason != last_complaint {
                        tracing::warn!(address = %self.opener.endpoint, reason, "idempotency keys were not swept");
                        last_complaint = reason;
                    }
                }
            }
        }
    }

    /// Deletes what there is to delete, and says how much that was.
    async fn sweep(&self) -> Result<usize, ConnectionError> {
        let (Sweeping(client), _driver): (_, Driver) = self.opener.begin(&()).await?;
        let mut from = "-infinity".to_owned();
        let mut records = 0;
        loop {
            let start = Instant::now();
            let batch = timeout(self.settings.timeout, self.delete(&client, &from)).await;
            let (deleted, last) = batch.unwrap_or(Err(ConnectionError::Silent))?;
            records += deleted;
            match last {
                Some(last) if deleted == MAX_RECORDS => from = last,
                _ => return Ok(records),
            }
            sleep(start.elapsed() * REST).await;
        }
    }

    /// One batch of records that end at this time or later, oldest first, and the end of the last one. What another
    /// process is at is left to that one. Nobody waits for the disk: what a crash brings back is swept again.
    ///
    /// One message, which passes any pooler. Without `from`, each batch would have to walk past all before it; a time
    /// that is not written in ISO style may be read as another one.
    async fn delete(&self, client: &Client, from: &str) -> Result<(usize, Option<String>), ConnectionError> {
        let settings = self.settings.statements("SET LOCAL");
        let messages = client
            .simple_query(&format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; {settings};
                SET LOCAL synchronous_commit = off; SET LOCAL DateStyle = ISO;
                WITH deleted AS (
                    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY (
                        SELECT ctid FROM idempotency_keys
                        WHERE expires_at >= '{from}' AND expires_at <= now()
                        ORDER BY expires_at LIMIT {MAX_RECORDS} FOR UPDATE SKIP LOCKED
                    ))
                    RETURNING expires_at
                )
                SELECT count(*), max(expires_at) FROM deleted; COMMIT"
            ))
            .await?;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let deleted = row.and_then(|row| row.get(0)?.parse().ok()).ok_or(ConnectionError::Unexpected)?;
        Ok((deleted, row.and_then(|row| row.get(1)).map(str::to_owned)))
    }
}
