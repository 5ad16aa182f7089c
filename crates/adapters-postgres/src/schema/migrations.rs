use std::time::Duration;

use diesel::{select, sql_types};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use diesel_migrations::MigrationHarness;
use tokio::time::{Instant, sleep, timeout};

use super::{migration_error::MigrationError, named_migration};
use crate::{PgEndpoint, connection::ConnectionTask, error::ConnectionError};

/// Key of the advisory lock of a process that changes the schema: a random number that all releases have in common.
const LOCK_KEY: i64 = 4_715_830_265_918_527_103;

/// Pause between two attempts to get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The migrations of one database.
pub struct Migrations {
    endpoint: PgEndpoint,
    timeout: Duration,
    lock_timeout: Duration,
}

impl Migrations {
    /// The timeout applies to opening a connection and to each response, but not to a migration.
    pub const fn new(endpoint: PgEndpoint, timeout: Duration) -> Self {
        Self { endpoint, timeout, lock_timeout: Duration::from_secs(5) }
    }

    /// Sets the timeout for another process that changes the schema, and for each lock of a table. Queries queue up
    /// behind a statement that waits for such a lock. The default is 5 seconds.
    #[must_use]
    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Self {
        Self { lock_timeout, ..self }
    }

    /// Returns the names of the pending migrations, in the order in which they are run.
    ///
    /// # Errors
    /// [`MigrationError::Unavailable`], [`MigrationError::Encoding`], [`MigrationError::Contracted`].
    pub async fn pending(&self) -> Result<Vec<String>, MigrationError> {
        let (mut connection, _task) = self.connect().await?;
        within(self.timeout, named_migration::pending(&mut connection)).await
    }

    /// Runs the pending migrations, one process at a time, and returns their names.
    ///
    /// # Errors
    /// See [`MigrationError`]. Migrations that ran before a failed one stay.
    ///
    /// # Panics
    /// On a runtime with a single thread: Diesel blocks the thread that runs migrations.
    pub async fn run(&self) -> Result<Vec<String>, MigrationError> {
        let (mut connection, task) = self.connect().await?;
        if within(self.timeout, named_migration::pending(&mut connection)).await?.is_empty() {
            return Ok(Vec::new());
        }
        within(self.lock_timeout + self.timeout, self.lock(&mut connection)).await?;
        // Another process may have run them meanwhile.
        let pending = within(self.timeout, named_migration::pending(&mut connection)).await?;
        let mut harness = AsyncMigrationHarness::new(connection);
        harness.applied_migrations().map_err(|error| MigrationError::Unavailable(error.to_string()))?;
        let mut done = Vec::new();
        for migration in named_migration::all().iter().filter(|migration| pending.contains(&migration.name)) {
            let name = migration.name.clone();
            tracing::info!(migration = name, "changing the schema");
            match harness.run_migration(migration) {
                Ok(_) => done.push(name),
                // The connection failed, not the migration.
                Err(error) if task.has_ended() => return Err(MigrationError::Unavailable(error.to_string())),
                Err(error) => return Err(MigrationError::Failed { name, reason: error.to_string() }),
            }
        }
        Ok(done)
    }

    async fn connect(&self) -> Result<(AsyncPgConnection, ConnectionTask), MigrationError> {
        let (client, task) = self.endpoint.connect(self.timeout).await?;
        let preparing = async { Ok(AsyncPgConnection::try_from(client).await.map_err(ConnectionError::from)?) };
        Ok((within(self.timeout, preparing).await?, task))
    }

    /// Keeps other processes from changing the schema until the connection ends. It polls: an index that is built
    /// concurrently waits for every running statement, including one that waits for this lock.
    async fn lock(&self, connection: &mut AsyncPgConnection) -> Result<(), MigrationError> {
        diesel::define_sql_function! { fn pg_try_advisory_lock(key: sql_types::BigInt) -> sql_types::Bool; }
        let lock_timeout = format!("SET lock_timeout = {}", self.lock_timeout.as_millis());
        connection.batch_execute(&lock_timeout).await?;
        let start = Instant::now();
        while !select(pg_try_advisory_lock(LOCK_KEY)).get_result::<bool>(connection).await? {
            if start.elapsed() > self.lock_timeout {
                let seconds = self.lock_timeout.as_secs();
                return Err(MigrationError::Locked(format!("it has not finished within {seconds} seconds")));
            }
            sleep(LOCK_PAUSE).await;
        }
        Ok(())
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, MigrationError>>,
) -> Result<T, MigrationError> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(ConnectionError::NoResponse.into()))
}
