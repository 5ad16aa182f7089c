use std::{error::Error, time::Duration};

use animal_store_app::SchemaComparison;
use diesel::{
    QueryResult,
    migration::{Migration, MigrationSource},
    pg::Pg,
    prelude::*,
    select, sql_types,
};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use tokio::time::{Instant, sleep, timeout};

use super::{migration_error::MigrationError, tables::__diesel_schema_migrations as records};
use crate::{
    PgEndpoint,
    connection::{ConnectionTask, application_name},
    error::ConnectionError,
};

const EMBEDDED: EmbeddedMigrations = embed_migrations!("migrations");

/// Key of the advisory lock of a process that changes the schema: a random number that all releases have in common.
const LOCK_KEY: i64 = 4_715_830_265_918_527_103;

/// Pause between two attempts to get the advisory lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Limit for each wait of a migration for a lock of a table. Queries queue behind a statement that waits for one.
const TABLE_LOCK_TIMEOUT: Duration = Duration::from_millis(200);

/// The migrations of one database. They are reported by their versions, such as `0001expand`.
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

    /// Sets the timeout for another process that changes the schema. The default is 5 seconds.
    #[must_use]
    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Self {
        Self { lock_timeout, ..self }
    }

    /// Returns the versions of the pending migrations, in the order in which they are run.
    ///
    /// # Errors
    /// [`MigrationError::Unavailable`], [`MigrationError::Encoding`], [`MigrationError::OlderLayout`],
    /// [`MigrationError::Contracted`].
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

    /// Runs the pending migrations, one process at a time, and returns their versions.
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
        for version in &pending {
            tracing::info!(migration = version, "changing the schema");
            let set = format!("SET lock_timeout = {}", table_lock_timeout(&*embedded(version)).as_millis());
            self.within(self.timeout, connection.batch_execute(&set)).await?;
            let mut harness = AsyncMigrationHarness::new(connection);
            // This creates the table of records.
            let ran = harness.applied_migrations().and_then(|_| harness.run_migration(&*embedded(version)));
            ran.map_err(|error| self.failure(version, &*error, task.has_ended()))?;
            connection = harness.into_inner();
        }
        Ok(pending)
    }

    /// `is_lost`: the connection failed, not the migration.
    fn failure(&self, version: &str, error: &(dyn Error + Send + Sync), is_lost: bool) -> MigrationError {
        let reason = format!("{}: {error}", self.endpoint.login());
        if is_lost {
            MigrationError::Unavailable(reason)
        } else if reason.contains("canceling statement due to lock timeout") {
            // Diesel does not pass the SQLSTATE on (55P03). In another language, the migration failed.
            MigrationError::TablesInUse(reason)
        } else {
            MigrationError::Failed { name: version.to_owned(), reason }
        }
    }

    async fn connect(&self) -> Result<(AsyncPgConnection, ConnectionTask), MigrationError> {
        let (client, task) = self.endpoint.connect(self.timeout).await?;
        Ok((self.within(self.timeout, AsyncPgConnection::try_from(client)).await?, task))
    }

    async fn compare(&self, connection: &mut AsyncPgConnection) -> Result<SchemaComparison, MigrationError> {
        let recorded = self.within(self.timeout, recorded_versions(connection)).await?;
        let comparison = SchemaComparison::from_versions(versions(), &recorded);
        if comparison.is_older_layout {
            return Err(MigrationError::OlderLayout);
        }
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

/// Returns the versions of the migrations of this program, in the order in which they are run.
fn versions() -> Vec<String> {
    let mut versions: Vec<_> = all().iter().map(|migration| migration.name().version().to_string()).collect();
    versions.sort();
    versions
}

fn embedded(version: &str) -> Box<dyn Migration<Pg>> {
    let mut all = all().into_iter();
    all.find(|migration| migration.name().version().to_string() == version).expect("a migration of this program")
}

fn all() -> Vec<Box<dyn Migration<Pg>>> {
    EMBEDDED.migrations().expect("embedded migrations can be read")
}

/// Outside of a transaction, a statement builds an index concurrently. It may wait longer: no query queues behind it.
fn table_lock_timeout(migration: &dyn Migration<Pg>) -> Duration {
    if migration.metadata().run_in_transaction() { TABLE_LOCK_TIMEOUT } else { Duration::ZERO }
}

/// Returns no versions if the table of records does not exist, and does not create it.
async fn recorded_versions(connection: &mut AsyncPgConnection) -> QueryResult<Vec<String>> {
    diesel::define_sql_function! { fn to_regclass(name: sql_types::Text) -> sql_types::Nullable<sql_types::Oid>; }
    let table: Option<u32> = select(to_regclass("__diesel_schema_migrations")).get_result(connection).await?;
    match table {
        None => Ok(Vec::new()),
        Some(_) => records::table.select(records::version).order(records::version).load(connection).await,
    }
}

fn warn_about_newer(migrations: &[String]) {
    if !migrations.is_empty() {
        tracing::warn!(migrations = migrations.join(", "), "a newer program has expanded the schema");
    }
}
