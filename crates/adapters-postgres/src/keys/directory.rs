//! How a directory of API keys follows the database.

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{
    Access, KeyCheck, KeySession, KeySource, KeyState, SELECT_STATE, key_state, read_delta,
};
use animal_store_app::ports::StoreResult;

use super::{Session, transaction::row_of};
use crate::{error::READ_ONLY, transaction::parse};

/// What a directory compares.
struct Server {
    state: KeyState,
    now: SystemTime,
    is_read_only: bool,
    started: SystemTime,
    /// Whether the user may read the marks. In a rolling upgrade, it may lack that.
    has_marks: bool,
}

impl Session {
    /// Reads the state of the keys, and that of the server.
    async fn observe(&mut self) -> StoreResult<Server> {
        let connection = self.take_connection().await?;
        let statement = format!(
            "SELECT state.*, clock_timestamp(), current_setting('transaction_read_only') = 'on',
                pg_postmaster_start_time(), has_table_privilege('api_key_marks', 'SELECT')
            FROM ({SELECT_STATE}) AS state"
        );
        let row = connection.query_one(&statement, &[]).await?;
        let server = Server {
            state: key_state(&mut row_of(&row)?)?,
            now: parse(&row, 4)?,
            is_read_only: parse(&row, 5)?,
            started: parse(&row, 6)?,
            has_marks: parse(&row, 7)?,
        };
        // A standby, to which a proxy may lead during a fail-over, has old keys.
        if server.is_read_only {
            return Err(connection.refused(READ_ONLY));
        }
        self.connection = Some(connection);
        Ok(server)
    }

    async fn compare(&mut self, known: Option<&KeyState>) -> StoreResult<KeyCheck> {
        let server = self.observe().await?;
        let mut known = known.filter(|_| self.server == Some(server.started));
        let mut delta = None;
        if known != Some(&server.state) {
            known = known.filter(|_| server.has_marks);
            let is_first = known.is_none();
            let known = known.cloned();
            delta = self
                .transact(Access::Read, move |sql| read_delta(sql, known.as_ref()))
                .await?;
            if is_first && delta.as_ref().is_some_and(|delta| delta.keys.is_empty()) {
                tracing::warn!(
                    "the database has no API key: unknown keys get 401; to create one: animal-store keys create --label NAME"
                );
            }
            self.server = Some(server.started);
        }
        Ok(KeyCheck {
            now: server.now,
            delta,
        })
    }
}

impl KeySource for Session {
    const INTERVAL: Duration = Duration::from_millis(100);
    const TRUST: Duration = Duration::from_millis(500);

    fn address(&self) -> String {
        self.database.endpoint.to_string()
    }

    async fn check(&mut self, known: Option<&KeyState>) -> Result<KeyCheck, String> {
        let compared = self.compare(known).await;
        compared.map_err(|failure| failure.reason())
    }
}
