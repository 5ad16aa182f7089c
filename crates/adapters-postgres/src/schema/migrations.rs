use std::time::Duration;

use animal_store_app::SchemaComparison;
use diesel::{QueryResult, select, sql_types};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use diesel_migrations::MigrationHarness;
use tokio::time::{Instant, sleep, timeout};

use super::{migration_error::MigrationError, named_migration};
use crate::{
    PgEndpoint,
    connection::{ConnectionTask, application_name},
    error::ConnectionError,
};

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
    pub fn new(endpoint: PgEndpoint, timeout: Duration) -> Self {
        let endpoint = endpoint.with_application_name(&application_name(false));
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
        let SchemaComparison { pending, newer, .. } = self.comparison().await?;
        warn_about_newer(&newer);
        Ok(pending)
    }

    /// Compares the migrations of this program with the records of the database. Fails as [`pending`](Self::pending).
    pub(crate) async fn comparison(&self) -> Result<SchemaComparison, MigrationError> {
        let (mut connection, _task) = self.connect().await?;
        self.compare(&mut connection).await
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
        let mut comparison = self.compare(&mut connection).await?;
        if !comparison.pending.is_empty() {
            if !self.within(self.lock_timeout + self.timeout, self.lock(&mut connection)).await? {
                return Err(MigrationError::Locked(self.lock_timeout));
            }
            // Another process may have run them meanwhile.
            comparison = self.compare(&mut connection).await?;
        }
        let SchemaComparison { pending, newer, .. } = comparison;
        warn_about_newer(&newer);
        let mut done = Vec::new();
        if pending.is_empty() {
            return Ok(done);
        }
        let mut harness = AsyncMigrationHarness::new(connection);
        let login = self.endpoint.login();
        let unavailable = |error| MigrationError::Unavailable(format!("{login}: {error}"));
        harness.applied_migrations().map_err(unavailable)?;
        for migration in named_migration::all().iter().filter(|migration| pending.contains(&migration.name)) {
            let name = migration.name.clone();
            tracing::info!(migration = name, "changing the schema");
            match harness.run_migration(migration) {
                Ok(_) => done.push(name),
                // The connection failed, not the migration.
                Err(error) if task.has_ended() => return Err(unavailable(error)),
                Err(error) => return Err(MigrationError::Failed { name, reason: format!("{login}: {error}") }),
            }
        }
        Ok(done)
    }

    async fn connect(&self) -> Result<(AsyncPgConnection, ConnectionTask), MigrationError> {
        let (client, task) = self.endpoint.connect(self.timeout).await?;
        Ok((self.within(self.timeout, AsyncPgConnection::try_from(client)).await?, task))
    }

    async fn compare(&self, connection: &mut AsyncPgConnection) -> Result<SchemaComparison, MigrationError> {
        let recorded = self.within(self.timeout, named_migration::recorded_names(connection)).await?;
        let comparison = SchemaComparison::from_names(named_migration::names(), &recorded);
        if !comparison.contracted.is_empty() {
            return Err(MigrationError::Contracted(comparison.contracted));
        }
        Ok(comparison)
    }

    /// Keeps other processes from changing the schema until the connection ends. It polls: an index that is built
    /// concurrently waits for every running statement, including one that waits for this lock. Returns whether this
    /// process has the lock.
    async fn lock(&self, connection: &mut AsyncPgConnection) -> QueryResult<bool> {
        diesel::define_sql_function! { fn pg_try_advisory_lock(key: sql_types::BigInt) -> sql_types::Bool; }
        let lock_timeout = format!("SET lock_timeout = {}", self.lock_timeout.as_millis());
        connection.batch_execute(&lock_timeout).await?;
        let start = Instant::now();
        while !select(pg_try_advisory_lock(LOCK_KEY)).get_result::<bool>(connection).await? {
            if start.elapsed() > self.lock_timeout {
                return Ok(false);
            }
            sleep(LOCK_PAUSE).await;
        }
        Ok(true)
    }

    async fn within<T, E: Into<ConnectionError>>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, MigrationError> {
        let result = timeout(limit, work).await.map_err(|_| ConnectionError::NoResponse);
        let result = result.and_then(|result| result.map_err(Into::into));
        result.map_err(|error| self.endpoint.locate(error).into())
    }
}

fn warn_about_newer(migrations: &[String]) {
    if !migrations.is_empty() {
        tracing::warn!(migrations = migrations.join(", "), "a newer program has expanded the schema");
    }
}
