//! The backend `postgres`: a database with pets, and with API keys if these are in it.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use animal_store_adapters_postgres::{
    Migrations, PgBulkStorage, PgEndpoint, PgStorage, PostgresSettings, SchemaMode, api_key_store,
    diagnose,
};
use animal_store_app::{
    Finding,
    ports::{ApiKeyStore, BulkStorage},
};
use animal_store_settings::{
    Setting, Values,
    parsers::{duration, number, one_of},
};
use anyhow::Context;
use async_trait::async_trait;
use prometheus_client::registry::Registry;

use super::{
    Access, ApiKeys, ApiKeysBackend, Backend, EXPOSED, NewRepository, PetsBackend, Storage,
    read_retention, start_sql_api_keys,
};

pub(crate) const SETTINGS: &[Setting] = &[
    Setting::secret(
        URL,
        "`postgres://[user[:password]@]host[:port]/database[?option=value&…]`, with options of libpq such as \
         `sslmode` and `sslrootcert`. Required by the backend `postgres`.",
    ),
    Setting::secret(
        MIGRATE_URL,
        "URL for migrations, if it differs: one that bypasses a pooler, or one of a user that may create tables.",
    ),
    Setting::new(
        "storage.postgres.migrate",
        "on-start",
        "`on-start`: run pending migrations before the first request. `check`: refuse to start with pending ones.",
    ),
    Setting::new(
        "storage.postgres.connections_per_worker",
        "2",
        "Number of read connections per worker thread. The process has three more, for creates and `/ready`, and one \
         for API keys in PostgreSQL.",
    ),
    Setting::new(
        POOLING,
        "false",
        "`true` behind a pooler in transaction mode, such as PgBouncer: nothing stays prepared, and each statement of \
         reads is a transaction. Requires `storage.postgres.migrate_url`, which must bypass the pooler.",
    ),
    Setting::new(
        "storage.postgres.timeout",
        "2s",
        "Timeout for each response of PostgreSQL, and for opening a connection, which the hosts of the URL share \
         equally. After it, requests get 503 and the connection is replaced. PostgreSQL ends a statement after three \
         quarters of it. A read has it including its time in the queue, a create without.",
    ),
];

const URL: &str = "storage.postgres.url";
const MIGRATE_URL: &str = "storage.postgres.migrate_url";
const POOLING: &str = "storage.postgres.transaction_pooling";

const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_mins(1);

const UNUSABLE: &str = "the storage cannot be used";

/// The database of pets and API keys, and how it is used.
#[derive(Debug)]
pub struct PostgresConfig {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) migrate_endpoint: PgEndpoint,
    /// What has no key has its default.
    pub settings: PostgresSettings,
}

impl PostgresConfig {
    /// Returns the database. `None`: it has no URL, or there is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let settings = read_settings(values);
        let endpoint = open_endpoint(values, URL);
        let migrate_endpoint = open_endpoint(values, MIGRATE_URL);
        let endpoint = endpoint?;
        Some(Self {
            migrate_endpoint: migrate_endpoint.unwrap_or_else(|| endpoint.clone()),
            endpoint,
            settings,
        })
    }

    /// Requires what a storage of pets needs.
    pub(crate) fn require(values: &mut Values) {
        let is_pooling = read_pooling(values);
        values.require(
            values.is_set(URL),
            &[URL],
            "is required if storage.backend is postgres",
        );
        values.require(
            values.is_set(MIGRATE_URL) || !is_pooling,
            &[MIGRATE_URL],
            "is required if storage.postgres.transaction_pooling is true",
        );
    }

    fn migrations(&self) -> Migrations {
        let timeout = self.settings.connect_timeout;
        Migrations::new(self.migrate_endpoint.clone(), timeout)
    }
}

#[async_trait]
impl PetsBackend for PostgresConfig {
    async fn start(&self, access: &mut Access, registry: &mut Registry) -> anyhow::Result<Storage> {
        let mut settings = self.settings.clone();
        if access.is_of_command() {
            settings.schema = SchemaMode::Check;
            settings.required_at_start = true;
        }
        let endpoint = self.endpoint.clone();
        let migrate_endpoint = self.migrate_endpoint.clone();
        let started = PgStorage::start(endpoint, migrate_endpoint, settings, registry).await;
        let (storage, writer) = started.context(UNUSABLE)?;
        let readiness = Some(storage.readiness());
        let new_repository: NewRepository = Arc::new(move || Arc::new(storage.repository()));
        Ok(Storage {
            new_repository,
            readiness,
            writer: Some(writer),
        })
    }

    async fn open_bulk(&self, access: &mut Access) -> anyhow::Result<Arc<dyn BulkStorage>> {
        let migrations = self.migrations();
        migrations.check().await.context(UNUSABLE)?;
        let endpoint = if access.is_read_only() {
            &self.endpoint
        } else {
            &self.migrate_endpoint
        };
        let settings = self.settings.clone();
        let storage = PgBulkStorage::new(endpoint.clone(), migrations, settings);
        Ok(Arc::new(storage))
    }

    async fn migrate(&self, dry_run: bool) -> anyhow::Result<Vec<String>> {
        let migrations = self.migrations();
        if dry_run {
            return Ok(migrations.pending().await?);
        }
        let versions = migrations.run().await?;
        for table in migrations.advance_sequences().await? {
            tracing::info!("the sequence of {table} was behind the greatest id, and was set to it");
        }
        Ok(versions)
    }

    fn connections(&self, workers: usize) -> usize {
        workers * self.settings.connections_per_worker
    }
}

#[async_trait]
impl Backend for PostgresConfig {
    fn place(&self) -> String {
        format!("postgres {}", self.endpoint)
    }

    async fn diagnose(&self, has_api_keys: bool) -> Vec<Finding> {
        let migrate_endpoint = &self.migrate_endpoint;
        diagnose(
            &self.endpoint,
            migrate_endpoint,
            &self.settings,
            has_api_keys,
        )
        .await
    }

    fn exposure(&self) -> Option<Finding> {
        let is_exposed = self.endpoint.is_exposed() || self.migrate_endpoint.is_exposed();
        let advice = "set sslmode=verify-full in the URLs of storage.postgres";
        is_exposed.then(|| Finding::warning("postgres.encryption", EXPOSED, advice))
    }
}

#[async_trait]
impl ApiKeysBackend for PostgresConfig {
    async fn start(&self, _: &mut Access, registry: &mut Registry) -> anyhow::Result<ApiKeys> {
        let store = api_key_store(self.endpoint.clone(), self.settings.clone());
        let (mut api_keys, directory_end) = start_sql_api_keys(&store, registry);
        // A check of a server that does not respond delays no shutdown.
        api_keys.session = Some(directory_end);
        Ok(api_keys)
    }

    /// Connects past a pooler, and with the rights of migrations.
    async fn open_store(&self, _: &mut Access) -> anyhow::Result<Option<Arc<dyn ApiKeyStore>>> {
        self.migrations().check_for_keys().await.context(UNUSABLE)?;
        let settings = PostgresSettings {
            transaction_pooling: false,
            ..self.settings.clone()
        };
        let endpoint = self.migrate_endpoint.clone();
        Ok(Some(Arc::new(api_key_store(endpoint, settings))))
    }

    fn administered_place(&self) -> String {
        format!("postgres {}", self.migrate_endpoint)
    }
}

fn read_settings(values: &mut Values) -> PostgresSettings {
    let timeout = values.get("storage.postgres.timeout", duration(TIMEOUT));
    let modes = one_of(&[
        ("on-start", SchemaMode::Migrate),
        ("check", SchemaMode::Check),
    ]);
    let connections = number(1..=64);
    PostgresSettings {
        schema: values.get("storage.postgres.migrate", modes),
        connections_per_worker: values.get("storage.postgres.connections_per_worker", connections),
        transaction_pooling: read_pooling(values),
        connect_timeout: timeout,
        timeout,
        idempotency_retention: read_retention(values),
        ..PostgresSettings::default()
    }
}

fn read_pooling(values: &mut Values) -> bool {
    values.get(POOLING, one_of(&[("true", true), ("false", false)]))
}

fn open_endpoint(values: &mut Values, name: &str) -> Option<PgEndpoint> {
    let url = values.secret(name)?;
    let endpoint = values.check(name, PgEndpoint::parse(&url))?;
    if let Some(authorities) = endpoint.authorities() {
        values.judge(authorities, false);
    }
    Some(endpoint)
}
