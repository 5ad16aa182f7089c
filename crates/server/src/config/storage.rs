//! The settings of the storage of pets, and of the SQLite file that API keys can be in as well.

use std::{
    ops::RangeInclusive,
    path::{PathBuf, absolute},
    time::Duration,
};

use animal_store_adapters_postgres::{PgEndpoint, PostgresSettings, SchemaMode};
use animal_store_adapters_sqlite::SqliteSettings;
use animal_store_settings::{
    Setting, Values,
    parsers::{Parsed, duration, number, one_of, path},
};

/// The storage of pets.
#[derive(Debug)]
pub enum StorageConfig {
    /// In a file.
    Sqlite(SqliteConfig),
    /// In the process.
    Memory(MemoryPetsConfig),
    /// In a database.
    Postgres(Box<PostgresConfig>),
}

/// Pets in memory.
#[derive(Debug)]
pub struct MemoryPetsConfig {
    /// How long an idempotency key is kept.
    pub(crate) idempotency_retention: Duration,
}

/// The file of pets and API keys, and how it is used.
#[derive(Debug)]
pub struct SqliteConfig {
    /// Absolute path.
    pub(crate) path: PathBuf,
    /// What has no key has its default.
    pub settings: SqliteSettings,
}

/// The database of pets and API keys, and how it is used.
#[derive(Debug)]
pub struct PostgresConfig {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) migrate_endpoint: PgEndpoint,
    /// What has no key has its default.
    pub settings: PostgresSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageBackend {
    Sqlite,
    Memory,
    Postgres,
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting::new(
        BACKEND,
        "sqlite",
        "Storage of the pets: `sqlite`, `postgres`, or `memory`, which is lost when the process ends.",
    ),
    Setting::new(
        "storage.idempotency_retention",
        "24h",
        "Time from the first create for which an `Idempotency-Key` prevents a second pet.",
    ),
    Setting::new(
        "storage.sqlite.path",
        "animal-store.db",
        "File of the backends `sqlite`, relative to the working directory. The first start creates it.",
    ),
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
        "storage.postgres.transaction_pooling",
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

const BACKEND: &str = "storage.backend";
const URL: &str = "storage.postgres.url";
const MIGRATE_URL: &str = "storage.postgres.migrate_url";

const RETENTION: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(30 * 24);
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_mins(1);

impl StorageConfig {
    /// Reads the section, with the URLs, also those of a backend that is not selected. `None` is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let backend = values.get(BACKEND, StorageBackend::parse);
        let sqlite = SqliteConfig::read(values);
        let postgres = PostgresConfig::read(values);
        Some(match backend {
            StorageBackend::Sqlite => Self::Sqlite(sqlite),
            StorageBackend::Memory => Self::Memory(MemoryPetsConfig {
                idempotency_retention: read_retention(values),
            }),
            StorageBackend::Postgres => Self::Postgres(Box::new(postgres?)),
        })
    }
}

impl StorageBackend {
    fn parse(text: &str) -> Parsed<Self> {
        one_of(&[
            ("sqlite", Self::Sqlite),
            ("memory", Self::Memory),
            ("postgres", Self::Postgres),
        ])(text)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
            Self::Postgres => "postgres",
        }
    }

    /// Returns the backend that is set, for the rules of other sections.
    pub(super) fn selected(values: &Values) -> Self {
        Self::parse(values.text(BACKEND)).unwrap_or(Self::Sqlite)
    }
}

impl SqliteConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        let path = values.get("storage.sqlite.path", path);
        Self {
            // Without a working directory, opening the file is the error.
            path: absolute(&path).unwrap_or(path),
            settings: SqliteSettings {
                idempotency_retention: read_retention(values),
                ..SqliteSettings::default()
            },
        }
    }
}

impl PostgresConfig {
    /// Returns the database. `None`: it has no URL, or there is an error.
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let settings = read_postgres(values);
        let endpoint = open_endpoint(values, URL);
        let migrate_endpoint = open_endpoint(values, MIGRATE_URL);
        let endpoint = endpoint?;
        Some(Self {
            migrate_endpoint: migrate_endpoint.unwrap_or_else(|| endpoint.clone()),
            endpoint,
            settings,
        })
    }
}

fn read_retention(values: &mut Values) -> Duration {
    values.get("storage.idempotency_retention", duration(RETENTION))
}

fn read_postgres(values: &mut Values) -> PostgresSettings {
    let timeout = values.get("storage.postgres.timeout", duration(TIMEOUT));
    let modes = one_of(&[
        ("on-start", SchemaMode::Migrate),
        ("check", SchemaMode::Check),
    ]);
    let pooling = one_of(&[("true", true), ("false", false)]);
    let connections = number(1..=64);
    let settings = PostgresSettings {
        schema: values.get("storage.postgres.migrate", modes),
        connections_per_worker: values.get("storage.postgres.connections_per_worker", connections),
        transaction_pooling: values.get("storage.postgres.transaction_pooling", pooling),
        connect_timeout: timeout,
        timeout,
        idempotency_retention: read_retention(values),
        ..PostgresSettings::default()
    };
    if StorageBackend::selected(values) == StorageBackend::Postgres {
        values.require(
            values.is_set(URL),
            &[URL],
            "is required if storage.backend is postgres",
        );
        values.require(
            values.is_set(MIGRATE_URL) || !settings.transaction_pooling,
            &[MIGRATE_URL],
            "is required if storage.postgres.transaction_pooling is true",
        );
    }
    settings
}

fn open_endpoint(values: &mut Values, name: &str) -> Option<PgEndpoint> {
    let url = values.secret(name)?;
    let endpoint = values.check(name, PgEndpoint::parse(&url))?;
    if let Some(authorities) = endpoint.authorities() {
        values.judge(authorities, false);
    }
    Some(endpoint)
}
