//! Reads the API keys for the directory of an instance.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{KeyChanges, KeyCheck, KeySource, StoredKey};
use tokio_postgres::{Client, types::Type};

use super::{PAGE_SIZE, rows};
use crate::{
    connection::{ConnectionSettings, ConnectionTask},
    error::{ConnectionError, within},
};

/// Reads the version, which server that is, its time, and whether it may be a standby.
const COMPARE: &str = "
    SELECT version, pg_postmaster_start_time(), clock_timestamp(), current_setting('transaction_read_only') = 'on'
    FROM api_key_state";

/// Reads the keys on a connection of its own, which it replaces after each failure.
pub(crate) struct KeyReader {
    connections: ConnectionSettings,
    connection: Option<(Client, ConnectionTask)>,
    /// When the server whose keys are known was started. After a fail-over, another one may lack some changes and have
    /// others with the same versions.
    server: Option<SystemTime>,
}

impl KeySource for KeyReader {
    const INTERVAL: Duration = Duration::from_millis(100);
    const TRUST: Duration = Duration::from_millis(500);

    fn address(&self) -> String {
        self.connections.endpoint.to_string()
    }

    async fn check(&mut self, known: Option<i64>) -> Result<KeyCheck, String> {
        if !*self.connections.schema_ready.borrow() {
            return Err("the schema cannot be used".to_owned());
        }
        let connection = match self.connection.take() {
            Some(connection) if !connection.0.is_closed() => connection,
            _ => self.connections.connect().await.map_err(|error| error.to_string())?,
        };
        let checked = self.compare(&connection.0, known).await;
        let checked = checked.map_err(|error| self.connections.endpoint.locate(error).to_string())?;
        self.connection = Some(connection);
        Ok(checked)
    }
}

impl KeyReader {
    pub(crate) fn new(connections: &ConnectionSettings) -> Self {
        Self { connections: connections.clone(), connection: None, server: None }
    }

    async fn compare(&mut self, client: &Client, known: Option<i64>) -> Result<KeyCheck, ConnectionError> {
        let row = within(self.connections.postgres.timeout, client.query_typed_one(COMPARE, &[])).await?;
        let (version, server, now) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if row.try_get(3)? {
            self.connections.demoted.send_replace(());
            return Err(ConnectionError::ReadOnly);
        }
        let known = known.filter(|_| self.server == Some(server));
        if known == Some(version) {
            return Ok(KeyCheck { now, changes: None });
        }
        // A backup may have been restored into the database.
        let changes = self.read(client, known.filter(|known| *known < version), version).await?;
        self.server = Some(server);
        Ok(KeyCheck { now, changes: Some(changes) })
    }

    /// Reads the keys that have changed since the version `known`, at least up to `version`. A key that changes meanwhile
    /// gets a greater version than those of the pages before: it is read again.
    async fn read(&self, client: &Client, known: Option<i64>, version: i64) -> Result<KeyChanges, ConnectionError> {
        let select = rows::select("version > $2 ORDER BY version LIMIT $3");
        let (now, limit) = (None::<SystemTime>, i64::try_from(PAGE_SIZE).unwrap_or(i64::MAX));
        let (mut read, mut keys) = (known.unwrap_or(i64::MIN), Vec::new());
        loop {
            let parameters = [(&now as _, Type::TIMESTAMPTZ), (&read as _, Type::INT8), (&limit as _, Type::INT8)];
            let page = within(self.connections.postgres.timeout, client.query_typed(&select, &parameters)).await?;
            for row in &page {
                read = row.try_get("version")?;
                keys.push(StoredKey::from(rows::key_row(row)?));
            }
            if page.len() < PAGE_SIZE {
                break;
            }
        }
        if known.is_none() && keys.iter().all(|key| key.tokens.is_empty()) {
            let (address, command) = (self.address(), "animal-store keys create --label NAME");
            tracing::warn!(
                address,
                command,
                "there is no API key: every request gets 401 until this command creates one"
            );
        }
        Ok(KeyChanges { version: version.max(read), keys, is_complete: known.is_none() })
    }
}
