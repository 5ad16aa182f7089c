//! The connection by which the directory of API keys follows the database.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{KeyChanges, KeyCheck, KeySource, SelectKeys, StoredKey};
use tokio_postgres::Client;

use super::rows;
use crate::{
    PgEndpoint, PostgresSettings,
    connection::ConnectionTask,
    error::{ConnectionError, within},
};

/// Timeout for reading the changed keys: all keys at the start.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The version, whether the server is read-only, its time, and when it was started.
const STATE: &str = "
    SELECT version, current_setting('transaction_read_only') = 'on', clock_timestamp(), pg_postmaster_start_time()
    FROM api_key_state";

/// Compares versions on one connection, which is opened when it is needed and replaced after a failure.
pub(super) struct Source {
    endpoint: PgEndpoint,
    settings: PostgresSettings,
    connection: Option<(Client, ConnectionTask)>,
    /// When the server whose keys are known was started. After a fail-over, another one may lack some changes, and have
    /// others with the same versions.
    server: Option<SystemTime>,
}

impl Source {
    pub(super) const fn new(endpoint: PgEndpoint, settings: PostgresSettings) -> Self {
        Self {
            endpoint,
            settings,
            connection: None,
            server: None,
        }
    }

    async fn compare(&mut self, known: Option<i64>) -> Result<KeyCheck, ConnectionError> {
        let limit = self.settings.timeout;
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.endpoint.connect(self.settings.connect_timeout).await?,
        };
        let client = &connection.0;
        let row = self
            .endpoint
            .within(limit, client.query_typed_one(STATE, &[]))
            .await?;
        let (version, is_read_only, now, server) = (
            row.try_get(0)?,
            row.try_get(1)?,
            row.try_get(2)?,
            row.try_get(3)?,
        );
        // A standby, to which a proxy may lead during a fail-over, has old keys.
        if is_read_only {
            return Err(self.endpoint.locate(ConnectionError::ReadOnly));
        }
        let known = known.filter(|_| self.server == Some(server));
        let mut changes = None;
        if known != Some(version) {
            within(
                limit,
                client.batch_execute(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off",
                ),
            )
            .await?;
            changes = Some(
                read_changes(client, known, limit)
                    .await
                    .map_err(|error| self.endpoint.locate(error))?,
            );
            within(limit, client.batch_execute("COMMIT")).await?;
            self.server = Some(server);
        }
        self.connection = Some(connection);
        Ok(KeyCheck { now, changes })
    }
}

/// Reads the changed keys of the state that the transaction sees.
async fn read_changes(
    client: &Client,
    known: Option<i64>,
    limit: Duration,
) -> Result<KeyChanges, ConnectionError> {
    let row = within(limit, client.query_typed_one(STATE, &[])).await?;
    let (version, now) = (row.try_get(0)?, row.try_get(2)?);
    // A backup may have been restored into the database.
    let known = known.filter(|known| *known < version);
    let select = SelectKeys::ChangedSince(known.unwrap_or(i64::MIN));
    let (statement, parameter) = rows::statement(&select);
    let rows = within(READ_TIMEOUT, client.query_typed(&statement, &[parameter])).await?;
    if known.is_none() && rows.is_empty() {
        tracing::warn!(
            "the database has no API key: unknown keys get 401; to create one: animal-store keys create --label NAME"
        );
    }
    let keys = rows::keys(&rows, now)?
        .into_iter()
        .map(StoredKey::from)
        .collect();
    Ok(KeyChanges {
        version,
        keys,
        is_complete: known.is_none(),
    })
}

impl KeySource for Source {
    const INTERVAL: Duration = Duration::from_millis(100);
    const TRUST: Duration = Duration::from_millis(500);

    fn address(&self) -> String {
        self.endpoint.to_string()
    }

    async fn check(&mut self, known: Option<i64>) -> Result<KeyCheck, String> {
        self.compare(known).await.map_err(|error| error.to_string())
    }
}
