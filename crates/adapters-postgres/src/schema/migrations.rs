use std::{collections::BTreeMap, error::Error, time::Duration};

use animal_store_adapter_kit::SchemaComparison;
use diesel::{
    migration::{Migration, MigrationSource},
    pg::Pg,
};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use super::engine;
use crate::{
    MigrationError, PgEndpoint,
    checks::{
        CANNOT_ALTER, CANNOT_CREATE, SEQUENCE_CACHED, SEQUENCES, advance_sequence, sequence_behind,
        texts,
    },
    connection::OpenConnection,
    settings::NO_TIMEOUTS,
};

const EMBEDDED: EmbeddedMigrations = embed_migrations!("migrations");

/// Key of the advisory lock of a process that changes the schema: a random number that all releases have in common.
const LOCK_KEY: i64 = 4_715_830_265_918_527_103;

/// Timeout for another process that changes the schema.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between two attempts to get the advisory lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Limit for each wait of a migration for a lock of a table. Queries queue behind a statement that waits for one.
const TABLE_LOCK_TIMEOUT: Duration = Duration::from_millis(200);

/// Limit for the wait for the inserts in flight and for autovacuum, which gives way after `deadlock_timeout` (1 s).
const SEQUENCE_LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the table of records exists. It is not created.
const HAS_RECORDS: &str =
    "SELECT 'it exists' WHERE to_regclass('__diesel_schema_migrations') IS NOT NULL";

/// Whether all tables of API keys exist.
const HAS_KEYS: &str = "SELECT 'they exist' WHERE to_regclass('api_key_marks') IS NOT NULL";

/// The versions of the migrations that have run.
const RECORDS: &str = "SELECT version FROM __diesel_schema_migrations ORDER BY version";

/// The migrations of one database. They are reported by their versions, such as `0001expand`.
pub struct Migrations {
    endpoint: PgEndpoint,
    timeout: Duration,
}

impl Migrations {
    /// The timeout applies to opening a connection and to each response, but not to a migration.
    pub fn new(endpoint: PgEndpoint, timeout: Duration) -> Self {
        Self {
            // They bypass a pooler.
            endpoint: endpoint.of_primary(false),
            timeout,
        }
    }

    /// Returns the versions of the pending migrations, in the order in which they are run.
    ///
    /// # Errors
    /// [`MigrationError::Unavailable`], [`MigrationError::Unusable`].
    pub async fn pending(&self) -> Result<Vec<String>, MigrationError> {
        Ok(pending(self.comparison().await?))
    }

    /// Fails if migrations are pending.
    ///
    /// # Errors
    /// As [`pending`](Self::pending); [`MigrationError::Unusable`] has the versions.
    pub async fn check(&self) -> Result<(), MigrationError> {
        let pending = self.pending().await?;
        if pending.is_empty() {
            return Ok(());
        }
        let pending = pending.join(", ");
        Err(MigrationError::Unusable(format!(
            "these migrations are pending: {pending}; run `animal-store migrate`"
        )))
    }

    /// Fails if migrations are pending that make the tables of API keys. A later one keeps no key from being revoked.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn check_for_keys(&self) -> Result<(), MigrationError> {
        if self.finds(HAS_KEYS).await? {
            return Ok(());
        }
        self.check().await
    }

    pub(crate) async fn comparison(&self) -> Result<SchemaComparison, MigrationError> {
        let opened = self.endpoint.connect(self.timeout).await?;
        self.compare(&opened.client).await
    }

    /// Runs the pending migrations, one process at a time, and returns their versions.
    ///
    /// # Errors
    /// See [`MigrationError`]. Migrations that ran before a failed one stay.
    ///
    /// # Panics
    /// On a runtime with a single thread: Diesel blocks the thread that runs migrations.
    pub async fn run(&self) -> Result<Vec<String>, MigrationError> {
        let OpenConnection { client, mut task } = self.endpoint.connect(self.timeout).await?;
        let mut comparison = self.compare(&client).await?;
        if !comparison.pending.is_empty() {
            self.lock(&client).await?;
            // Another process may have run them meanwhile.
            comparison = self.compare(&client).await?;
        }
        let pending = pending(comparison);
        if pending.is_empty() {
            return Ok(pending);
        }
        let adopt = AsyncPgConnection::try_from(client);
        let mut connection = self.endpoint.within(self.timeout, adopt).await?;
        for version in &pending {
            tracing::info!(migration = version, "changing the schema");
            let is_transaction = migrations()[version].metadata().run_in_transaction();
            // Outside of a transaction, a statement builds an index concurrently. No query queues behind it.
            let lock_timeout = if is_transaction {
                TABLE_LOCK_TIMEOUT
            } else {
                Duration::ZERO
            };
            let lock_timeout = lock_timeout.as_millis();
            let set = format!("{NO_TIMEOUTS}; SET lock_timeout = {lock_timeout}");
            let set = connection.batch_execute(&set);
            self.endpoint.within(self.timeout, set).await?;
            let mut harness = AsyncMigrationHarness::new(connection);
            // This creates the table of records.
            let ran = harness
                .applied_migrations()
                .and_then(|_| harness.run_migration(&*migrations()[version]));
            ran.map_err(|error| self.failure(version, &*error, task.has_ended()))?;
            connection = harness.into_inner();
        }
        Ok(pending)
    }

    /// Sets each sequence of ids that is behind the greatest id to it, as after a restore without sequences. Writes to
    /// its table wait meanwhile. Returns these tables.
    ///
    /// # Errors
    /// [`MigrationError::Unavailable`].
    pub async fn advance_sequences(&self) -> Result<Vec<String>, MigrationError> {
        let opened = self.endpoint.connect(self.timeout).await?;
        let client = &opened.client;
        let mut advanced = Vec::new();
        for table in self.texts(client, SEQUENCES).await? {
            let behind = self.texts(client, &sequence_behind(&table)).await?;
            if !behind.is_empty() {
                self.advance_sequence(client, &table).await?;
                advanced.push(table);
            }
        }
        Ok(advanced)
    }

    async fn advance_sequence(&self, client: &Client, table: &str) -> Result<(), MigrationError> {
        let lock_timeout = SEQUENCE_LOCK_TIMEOUT.as_millis();
        let advance = advance_sequence(table, &format!("(SELECT max(id) FROM {table})"));
        let advance = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL row_security = off;
            SET LOCAL lock_timeout = {lock_timeout}; SET LOCAL statement_timeout = 0; {advance}; COMMIT"
        );
        let limit = self.timeout + SEQUENCE_LOCK_TIMEOUT;
        let advanced = client.batch_execute(&advance);
        Ok(self.endpoint.within(limit, advanced).await?)
    }

    /// Returns the problems of the sequences of ids.
    pub(crate) async fn sequence_problems(&self) -> Result<Vec<String>, MigrationError> {
        let opened = self.endpoint.connect(self.timeout).await?;
        let client = &opened.client;
        let mut problems = self.texts(client, SEQUENCE_CACHED).await?;
        for table in self.texts(client, SEQUENCES).await? {
            problems.extend(self.texts(client, &sequence_behind(&table)).await?);
        }
        Ok(problems)
    }

    /// Returns why the user cannot run migrations.
    pub(crate) async fn obstacles(&self) -> Result<Vec<String>, MigrationError> {
        let opened = self.endpoint.connect(self.timeout).await?;
        let obstacles = format!("{CANNOT_CREATE} UNION ALL {CANNOT_ALTER}");
        self.texts(&opened.client, &obstacles).await
    }

    /// Whether a query of [`checks`](crate::checks) finds a problem.
    pub(crate) async fn finds(&self, query: &str) -> Result<bool, MigrationError> {
        let opened = self.endpoint.connect(self.timeout).await?;
        Ok(!self.texts(&opened.client, query).await?.is_empty())
    }

    async fn texts(&self, client: &Client, query: &str) -> Result<Vec<String>, MigrationError> {
        let texts = texts(client, query);
        Ok(self.endpoint.within(self.timeout, texts).await?)
    }

    /// `is_lost`: the connection failed, not the migration.
    fn failure(
        &self,
        version: &str,
        error: &(dyn Error + Send + Sync),
        is_lost: bool,
    ) -> MigrationError {
        let reason = format!("{}: {error}", self.endpoint.login());
        if is_lost {
            MigrationError::Unavailable(reason)
        } else if reason.contains("canceling statement due to lock timeout") {
            // Diesel does not pass the SQLSTATE on (55P03). In another language, the migration failed.
            MigrationError::TablesInUse(reason)
        } else {
            MigrationError::Failed(format!("migration {version} failed: {reason}"))
        }
    }

    async fn compare(&self, client: &Client) -> Result<SchemaComparison, MigrationError> {
        let engine = engine::unsupported(client);
        if let Some(engine) = self.endpoint.within(self.timeout, engine).await? {
            let login = self.endpoint.login();
            let reason = format!(
                "{login}: {engine} is not supported: see \"Engines\" in docs/operations/postgresql.md"
            );
            return Err(MigrationError::Unusable(reason));
        }
        let mut recorded = Vec::new();
        if !self.texts(client, HAS_RECORDS).await?.is_empty() {
            recorded = self.texts(client, RECORDS).await?;
        }
        SchemaComparison::from_versions(migrations().into_keys().collect(), &recorded)
            .map_err(MigrationError::Unusable)
    }

    /// Keeps other processes from changing the schema until the connection ends. It polls: an index that is built
    /// concurrently waits for every running statement, including one that waits for this lock.
    async fn lock(&self, client: &Client) -> Result<(), MigrationError> {
        let lock = format!("SELECT 'locked' WHERE pg_try_advisory_lock({LOCK_KEY})");
        let start = Instant::now();
        while self.texts(client, &lock).await?.is_empty() {
            if start.elapsed() > LOCK_TIMEOUT {
                return Err(MigrationError::Locked(LOCK_TIMEOUT));
            }
            sleep(LOCK_PAUSE).await;
        }
        Ok(())
    }
}

/// Returns the migrations of this program by their versions, in the order in which they are run.
fn migrations() -> BTreeMap<String, Box<dyn Migration<Pg>>> {
    let migrations: Vec<Box<dyn Migration<Pg>>> = EMBEDDED
        .migrations()
        .expect("embedded migrations can be read");
    migrations
        .into_iter()
        .map(|migration| (migration.name().version().to_string(), migration))
        .collect()
}

/// Returns the pending migrations, and logs those of a newer program.
fn pending(comparison: SchemaComparison) -> Vec<String> {
    if !comparison.newer.is_empty() {
        tracing::warn!(
            migrations = comparison.newer.join(", "),
            "a newer program has expanded the schema"
        );
    }
    comparison.pending
}
