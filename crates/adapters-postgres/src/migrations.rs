//! The schema, and which changes of it a database has seen.
//!
//! A change is recorded by its whole name. So a program that is older than the database can tell an expansion, which
//! it can live with, from a contraction, which it cannot; see `migrations/README.md`.

mod named;

use std::time::Duration;

use diesel::{prelude::*, select, sql_types};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    PgEndpoint,
    endpoint::{Driver, Opened},
    error::ConnectionError,
    schema::__diesel_schema_migrations as history,
};
use named::Named;

const EMBEDDED: EmbeddedMigrations = embed_migrations!("migrations");

/// A random number: whoever changes the schema holds the lock of this name.
const LOCK: i64 = 4_715_830_265_918_527_103;

/// How long a change waits for a lock that somebody else holds: queries queue up behind one that waits.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two attempts to get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The changes of the schema of one database.
pub struct Migrations {
    endpoint: PgEndpoint,
    patience: Duration,
}

/// Why the schema is not as it has to be.
#[derive(Debug, Error)]
pub enum MigrationError {
    /// The database cannot be reached, or fails at what it is asked for. It may be worth another attempt.
    #[error("{0}")]
    Unavailable(String),
    /// Somebody else has been changing the schema for too long.
    #[error("another process is changing the schema: {0}")]
    Locked(String),
    /// The database is of another encoding.
    #[error("{0}")]
    Encoding(String),
    /// Some changes have not been made, and are not to be made here.
    #[error("the database has not seen these migrations: {}; run `animal-store migrate`", .0.join(", "))]
    Pending(Vec<String>),
    /// A newer program has taken away what this one needs.
    #[error("a newer program has made changes that this one cannot work with: {}", .0.join(", "))]
    Contracted(Vec<String>),
    /// A change failed. It was not made, unless it is one that runs outside of a transaction.
    #[error("migration {name} failed: {reason}")]
    Failed {
        /// Which one.
        name: String,
        /// What PostgreSQL says.
        reason: String,
    },
}

impl MigrationError {
    /// Whether no start makes sense before somebody has changed the database or the program.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Encoding(_) | Self::Pending(_) | Self::Contracted(_))
    }

    /// Whether it may be over in a moment.
    pub(crate) const fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Locked(_))
    }
}

impl Migrations {
    /// Those of this database. A connection, and each answer but that to a migration itself, may take so long.
    pub const fn new(endpoint: PgEndpoint, patience: Duration) -> Self {
        Self { endpoint, patience }
    }

    /// The names of those that the database has not seen, in the order in which they are run.
    ///
    /// # Errors
    /// [`MigrationError::Unavailable`], [`MigrationError::Encoding`], [`MigrationError::Contracted`].
    pub async fn pending(&self) -> Result<Vec<String>, MigrationError> {
        let Connection { mut connection, driver: _driver } = self.connect().await?;
        let history = self.history(&mut connection).await?;
        history.warn_of_newer();
        Ok(history.pending)
    }

    /// Runs those that the database has not seen, one process at a time, and returns their names.
    ///
    /// # Errors
    /// See [`MigrationError`]. Those that were run before one failed stay.
    ///
    /// # Panics
    /// On a runtime of a single thread: the migrations of Diesel block theirs.
    pub async fn run(&self) -> Result<Vec<String>, MigrationError> {
        let Connection { mut connection, driver } = self.connect().await?;
        let history = self.history(&mut connection).await?;
        history.warn_of_newer();
        if history.pending.is_empty() {
            return Ok(Vec::new());
        }
        within(LOCK_TIMEOUT + self.patience, lock(&mut connection)).await?;
        // Somebody else may have run them meanwhile.
        let history = self.history(&mut connection).await?;
        let mut harness = AsyncMigrationHarness::new(connection);
        harness.applied_migrations().map_err(|error| MigrationError::Unavailable(error.to_string()))?;
        let mut done = Vec::new();
        for migration in Named::all(&EMBEDDED).iter().filter(|ours| history.pending.contains(&ours.name)) {
            let name = migration.name.clone();
            tracing::info!(migration = name, "changing the schema");
            match harness.run_migration(migration) {
                Ok(_) => done.push(name),
                // That is the server's end, not the migration's.
                Err(error) if driver.has_ended() => return Err(MigrationError::Unavailable(error.to_string())),
                Err(error) => return Err(MigrationError::Failed { name, reason: error.to_string() }),
            }
        }
        Ok(done)
    }

    async fn history(&self, connection: &mut AsyncPgConnection) -> Result<History, MigrationError> {
        within(self.patience, History::read(connection)).await
    }

    async fn connect(&self) -> Result<Connection, MigrationError> {
        let Opened { client, driver } = self.endpoint.connect(self.patience).await.map_err(|error| match error {
            ConnectionError::NotUtf8(_) => MigrationError::Encoding(error.to_string()),
            error => MigrationError::Unavailable(error.to_string()),
        })?;
        let begun = async {
            let connection = AsyncPgConnection::try_from(client).await;
            connection.map_err(|error| MigrationError::Unavailable(error.to_string()))
        };
        Ok(Connection { connection: within(self.patience, begun).await?, driver })
    }
}

/// A migration itself may take as long as it takes; everything else has to be done in time.
async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, MigrationError>>,
) -> Result<T, MigrationError> {
    let late = |_| Err(MigrationError::Unavailable(ConnectionError::Silent.to_string()));
    timeout(patience, work).await.unwrap_or_else(late)
}

struct Connection {
    connection: AsyncPgConnection,
    driver: Driver,
}

/// What a database has seen, beside what we have.
struct History {
    /// Ours that it has not seen.
    pending: Vec<String>,
    /// Expansions that it has seen and we have not.
    newer: Vec<String>,
}

impl History {
    async fn read(connection: &mut AsyncPgConnection) -> Result<Self, MigrationError> {
        let seen = seen(connection).await?;
        let ours: Vec<String> = Named::all(&EMBEDDED).into_iter().map(|migration| migration.name).collect();
        let unknown = seen.iter().filter(|name| !ours.contains(name)).cloned();
        let (newer, contracted): (Vec<_>, Vec<_>) = unknown.partition(|name| named::expands(name));
        let pending = ours.into_iter().filter(|name| !seen.contains(name)).collect();
        if contracted.is_empty() { Ok(Self { pending, newer }) } else { Err(MigrationError::Contracted(contracted)) }
    }

    fn warn_of_newer(&self) {
        if !self.newer.is_empty() {
            tracing::warn!(migrations = self.newer.join(", "), "a newer program has expanded the schema");
        }
    }
}

/// Keeps other processes from changing the schema, until the connection ends. It is asked for over and over: a statement
/// that waits for it would be waited for in turn by one that builds an index concurrently.
async fn lock(connection: &mut AsyncPgConnection) -> Result<(), MigrationError> {
    diesel::define_sql_function! { fn pg_try_advisory_lock(key: sql_types::BigInt) -> sql_types::Bool; }
    let lock_timeout = format!("SET lock_timeout = {}", LOCK_TIMEOUT.as_millis());
    connection.batch_execute(&lock_timeout).await?;
    let start = Instant::now();
    while !select(pg_try_advisory_lock(LOCK)).get_result::<bool>(connection).await? {
        if start.elapsed() > LOCK_TIMEOUT {
            return Err(MigrationError::Locked(format!("it has not ended in {} seconds", LOCK_TIMEOUT.as_secs())));
        }
        sleep(LOCK_PAUSE).await;
    }
    Ok(())
}

/// The names of the changes that were made. Where there is no record, none was; asking does not make one.
async fn seen(connection: &mut AsyncPgConnection) -> QueryResult<Vec<String>> {
    diesel::define_sql_function! { fn to_regclass(name: sql_types::Text) -> sql_types::Nullable<sql_types::Oid>; }
    let table: Option<u32> = select(to_regclass("__diesel_schema_migrations")).get_result(connection).await?;
    match table {
        None => Ok(Vec::new()),
        Some(_) => history::table.select(history::version).order(history::version).load(connection).await,
    }
}

impl From<diesel::result::Error> for MigrationError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}
