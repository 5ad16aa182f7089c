//! The connection by which the directory of API keys follows the database.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{KeyChanges, KeySource, StoredKey, backoff};
use animal_store_app::from_milliseconds;
use tokio::time::sleep;
use tokio_postgres::Client;

use super::rows::{self, Select};
use crate::{
    PgEndpoint, PostgresSettings,
    connection::ConnectionTask,
    error::{ConnectionError, within},
};

/// Pauses between attempts to connect.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// Timeout for reading the changed keys: all keys at the start.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The version, whether the server is read-only, and its time in milliseconds since 1970.
const STATE: &str = "SELECT version, current_setting('transaction_read_only') = 'on',
    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM api_key_state";

/// Compares versions on one connection, which is opened when it is needed and replaced after a failure.
pub(super) struct Source {
    endpoint: PgEndpoint,
    settings: PostgresSettings,
    connection: Option<(Client, ConnectionTask)>,
    pauses: Box<dyn Iterator<Item = Duration> + Send>,
    /// Whether the last check failed.
    failed: bool,
}

impl Source {
    pub(super) fn new(endpoint: PgEndpoint, settings: PostgresSettings) -> Self {
        Self { endpoint, settings, connection: None, pauses: pauses(), failed: false }
    }

    async fn compare(&mut self, known: Option<i64>) -> Result<Option<KeyChanges>, ConnectionError> {
        let limit = self.settings.timeout;
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.endpoint.connect(self.settings.connect_timeout).await?,
        };
        let client = &connection.0;
        // A standby, to which a proxy may lead during a fail-over, has old keys.
        let row = within(limit, client.query_typed_one(STATE, &[])).await?;
        if row.try_get(1)? {
            return Err(ConnectionError::ReadOnly);
        }
        let mut changes = None;
        if known != Some(row.try_get(0)?) {
            within(limit, client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")).await?;
            changes = Some(read_changes(client, known, limit).await?);
            within(limit, client.batch_execute("COMMIT")).await?;
        }
        self.connection = Some(connection);
        Ok(changes)
    }
}

/// Reads the changed keys of the state that the transaction sees.
async fn read_changes(client: &Client, known: Option<i64>, limit: Duration) -> Result<KeyChanges, ConnectionError> {
    let row = within(limit, client.query_typed_one(STATE, &[])).await?;
    let (version, there) = (row.try_get(0)?, from_milliseconds(row.try_get(2)?));
    // Tokens expire by the clock of the server.
    let here = SystemTime::now();
    let expiry = |expires: SystemTime| here + expires.duration_since(there).unwrap_or_default();
    // A backup may have been restored into the database.
    let select = Select::ChangedSince(known.filter(|known| *known < version).unwrap_or(i64::MIN));
    let (statement, parameter) = select.statement();
    let rows = within(READ_TIMEOUT, client.query_typed(&statement, &[parameter])).await?;
    if known.is_none() && rows.is_empty() {
        tracing::warn!(
            "the database has no API key: unknown keys get 401; to create one: animal-store keys create --label NAME"
        );
    }
    let mut keys: Vec<StoredKey> = rows::keys(&rows, there)?.into_iter().map(StoredKey::from).collect();
    for (_, expires) in keys.iter_mut().flat_map(|key| &mut key.tokens) {
        *expires = expires.map(expiry);
    }
    Ok(KeyChanges { version, keys })
}

impl KeySource for Source {
    const INTERVAL: Duration = Duration::from_millis(100);
    const TRUST: Duration = Duration::from_millis(500);

    fn address(&self) -> String {
        self.endpoint.to_string()
    }

    async fn changes(&mut self, known: Option<i64>) -> Result<Option<KeyChanges>, String> {
        if self.failed {
            sleep(self.pauses.next().unwrap_or(PAUSES[1])).await;
        }
        let compared = self.compare(known).await;
        self.failed = compared.is_err();
        if !self.failed {
            self.pauses = pauses();
        }
        compared.map_err(|error| self.endpoint.locate(error).to_string())
    }
}

fn pauses() -> Box<dyn Iterator<Item = Duration> + Send> {
    Box::new(backoff(PAUSES[0], PAUSES[1]))
}
