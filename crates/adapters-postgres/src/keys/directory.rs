//! The connection by which the directory of API keys follows the database.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{
    KeyCheck, KeyCounts, KeyDelta, KeyRows, KeySource, KeyState, SELECT_KEY_STATE, SelectKeys,
};
use tokio_postgres::{Client, Row, types::Type};

use super::rows;
use crate::{
    connection::{ConnectionTask, within},
    error::ConnectionError,
    transaction::Database,
};

/// Timeout for reading the changed keys: all keys at the start.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the query for the state of the keys, whether the server is read-only, its time, when it was started, and
/// whether the user may read the marks.
fn select_state() -> String {
    format!(
        "SELECT state.*, current_setting('transaction_read_only') = 'on', clock_timestamp(),
            pg_postmaster_start_time(), has_table_privilege('api_key_marks', 'SELECT')
        FROM ({SELECT_KEY_STATE}) AS state"
    )
}

/// Compares states on one connection, which is opened when it is needed and replaced after a failure.
pub(super) struct Source {
    database: Database,
    connection: Option<(Client, ConnectionTask)>,
    /// When the server whose keys are known was started. After a fail-over, another one may lack changes without marks.
    server: Option<SystemTime>,
}

impl Source {
    pub(super) const fn new(database: Database) -> Self {
        Self {
            database,
            connection: None,
            server: None,
        }
    }

    async fn compare(
        &mut self,
        client: &Client,
        known: Option<&KeyState>,
    ) -> Result<KeyCheck, ConnectionError> {
        let limit = self.database.settings.timeout;
        let row = within(limit, client.query_typed_one(&select_state(), &[])).await?;
        let is_read_only: bool = row.try_get(4)?;
        let now = row.try_get(5)?;
        let server = row.try_get(6)?;
        // A standby, to which a proxy may lead during a fail-over, has old keys.
        if is_read_only {
            return Err(ConnectionError::ReadOnly);
        }
        let known = known.filter(|_| self.server == Some(server));
        let mut delta = None;
        if known != Some(&state(&row)?) {
            let begin =
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off";
            within(limit, client.batch_execute(begin)).await?;
            delta = Some(read_delta(client, known, limit).await?);
            within(limit, client.batch_execute("COMMIT")).await?;
            self.server = Some(server);
        }
        Ok(KeyCheck { now, delta })
    }
}

fn state(row: &Row) -> Result<KeyState, tokio_postgres::Error> {
    Ok(KeyState {
        version: row.try_get(0)?,
        mark: row.try_get(1)?,
        counts: KeyCounts {
            keys: row.try_get(2)?,
            tokens: row.try_get(3)?,
        },
    })
}

/// Reads the changed keys of the state that the transaction sees.
async fn read_delta(
    client: &Client,
    known: Option<&KeyState>,
    limit: Duration,
) -> Result<KeyDelta, ConnectionError> {
    let row = within(limit, client.query_typed_one(&select_state(), &[])).await?;
    let state = state(&row)?;
    let has_marks: bool = row.try_get(7)?;
    let mut known = known.filter(|_| has_marks);
    if let Some(before) = known {
        let marks =
            "SELECT count(*) FROM api_key_marks WHERE version > $1 OR version = $1 AND mark = $2";
        let values = [
            (&before.version as _, Type::INT8),
            (&before.mark as _, Type::BYTEA),
        ];
        let marks = within(limit, client.query_typed_one(marks, &values)).await?;
        let marks = marks.try_get(0)?;
        known = known.filter(|known| state.continues(known, marks));
    }
    let select = SelectKeys::ChangedSince(known.map_or(i64::MIN, |known| known.version));
    let (statement, parameter) = rows::statement(&select);
    let rows = within(READ_TIMEOUT, client.query_typed(&statement, &[parameter])).await?;
    if known.is_none() && rows.is_empty() {
        tracing::warn!(
            "the database has no API key: unknown keys get 401; to create one: animal-store keys create --label NAME"
        );
    }
    KeyRows::delta(rows::keys(&rows)?, state, known.is_none()).map_err(ConnectionError::Keys)
}

impl KeySource for Source {
    const INTERVAL: Duration = Duration::from_millis(100);
    const TRUST: Duration = Duration::from_millis(500);

    fn address(&self) -> String {
        self.database.endpoint.to_string()
    }

    async fn check(&mut self, known: Option<&KeyState>) -> Result<KeyCheck, String> {
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            let limit = self.database.settings.connect_timeout;
            let connected = self.database.endpoint.connect(limit).await;
            connected.map_err(|error| error.to_string())?
        };
        let checked = self.compare(&connection.0, known).await;
        let checked = checked.map_err(|error| self.database.endpoint.locate(error).to_string())?;
        self.connection = Some(connection);
        Ok(checked)
    }
}
