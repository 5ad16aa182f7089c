//! API keys in the database: its transactions for the [store](SqlApiKeyStore) that it shares with SQLite.
//!
//! **Problem.** Every instance looks keys up for each request, and a command or another instance changes them.
//!
//! **Invariant.** A change locks the row of the version, so that changes wait for each other; the user of the instances
//! may not lock it. A directory accepts no key of a standby, and trusts no history of another server (`directory`).
//! Times are those of the server. Statements wait on threads for blocking work (`transaction`).
//!
//! **Proof.** The contract suites of keys; in `tests/postgres`: `keys.rs` and `keys_revocations.rs`.

mod directory;
mod transaction;

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{Access, KeyDatabase, KeySession, Sql, SqlApiKeyStore};
use animal_store_app::ports::{StoreFailure, StoreResult};
use tokio::{runtime::Handle, task::spawn_blocking};

use self::transaction::Transaction;
use crate::{
    PgEndpoint, PostgresSettings,
    checks::missing_permissions,
    transaction::{Database, TransactionConnection},
};

/// What a change needs.
const NEEDED: [(&str, &str); 7] = [
    ("api_keys", "SELECT, INSERT, UPDATE"),
    ("api_key_tokens", "SELECT, INSERT, DELETE"),
    ("api_key_state", "SELECT, UPDATE"),
    ("api_key_marks", "SELECT, INSERT, UPDATE, DELETE"),
    ("api_key_readings", "SELECT, INSERT, DELETE"),
    ("api_key_uses", "SELECT, DELETE"),
    ("api_key_changes", "SELECT, INSERT, DELETE"),
];

/// Timeout of a statement that may read all keys. Its waits for locks have the timeout of other statements.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Begins a transaction that reads one state, without the plans of requests, which are for a few rows.
fn begin_read(settings: &PostgresSettings) -> String {
    let lock_timeout = settings.timeout.as_millis().max(1);
    let timeout = READ_TIMEOUT.as_millis();
    format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off; \
         SET LOCAL lock_timeout = {lock_timeout}; SET LOCAL statement_timeout = {timeout}; \
         SET LOCAL idle_in_transaction_session_timeout = {timeout}"
    )
}

/// Index scans for a few keys, whatever the number of keys.
const FEW_KEYS: &str = "SET LOCAL enable_nestloop = on; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// Changes and lists API keys in a database. Its instances serve requests at the same time.
pub type PgApiKeyStore = SqlApiKeyStore<Database>;

/// Creates a store of API keys. Of the settings, it uses the timeouts and `transaction_pooling`. The schema has to be up
/// to date.
pub fn api_key_store(endpoint: PgEndpoint, settings: PostgresSettings) -> PgApiKeyStore {
    PgApiKeyStore::new(Database::new(endpoint, settings))
}

/// A connection that is opened when it is needed, and replaced after a failure.
pub struct Session {
    database: Database,
    /// Absent before the first use and after a failure.
    connection: Option<TransactionConnection>,
    /// When the server whose keys are known was started. After a fail-over, another one may lack changes without marks.
    server: Option<SystemTime>,
}

impl Session {
    /// Takes the connection. It is put back after a success: its end ends its transaction. One that PostgreSQL has
    /// ended meanwhile, as `idle_session_timeout` does, is replaced.
    async fn take_connection(&mut self) -> StoreResult<TransactionConnection> {
        match self.connection.take() {
            Some(connection) if !connection.has_ended() => Ok(connection),
            _ => self.database.connect().await,
        }
    }
}

impl KeyDatabase for Database {
    type Session = Session;

    fn session(&self) -> Session {
        Session {
            database: self.clone(),
            connection: None,
            server: None,
        }
    }

    fn timeout(&self) -> Duration {
        self.settings.timeout
    }
}

impl KeySession for Session {
    async fn transact<T: Send + 'static>(
        &mut self,
        access: Access,
        work: impl FnOnce(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let connection = self.take_connection().await?;
        match access {
            Access::Read => connection.run(&begin_read(&self.database.settings)).await?,
            Access::Write => connection.begin(FEW_KEYS).await?,
        }
        let mut transaction = Transaction {
            connection,
            timeout: match access {
                Access::Read => READ_TIMEOUT,
                Access::Write => self.database.settings.timeout,
            },
            runtime: Handle::current(),
        };
        let worked = spawn_blocking(move || {
            let result = work(&mut transaction)?;
            Ok::<_, StoreFailure>((result, transaction.connection))
        });
        let (result, connection) = worked
            .await
            .map_err(|panic| StoreFailure::Unavailable(panic.to_string().into()))??;
        match access {
            // It changes nothing, so it has no unknown outcome.
            Access::Read => connection.run("COMMIT").await?,
            Access::Write => connection.commit().await?,
        }
        self.connection = Some(connection);
        Ok(result)
    }

    async fn check_writable(&mut self) -> StoreResult<()> {
        let connection = self.take_connection().await?;
        connection.begin("").await?;
        connection
            .check(
                &missing_permissions(&NEEDED),
                "the user lacks permissions: ",
            )
            .await
    }
}
