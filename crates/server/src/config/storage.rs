//! The settings of the storage of pets, and of the SQLite file that API keys can be in as well.

use std::{
    fmt,
    ops::RangeInclusive,
    path::{PathBuf, absolute},
    time::Duration,
};

use animal_store_adapters_postgres::{PgEndpoint, PostgresSettings, SchemaMode};
use animal_store_adapters_sqlite::SqliteSettings;
use animal_store_settings::{
    Setting, Values,
    parsers::{duration, number, one_of, path},
};

use super::files::Files;

/// The storage of pets.
#[derive(Debug)]
pub enum StorageConfig {
    /// In a file.
    Sqlite(SqliteConfig),
    /// In the process.
    Memory {
        /// How long an idempotency key is kept.
        idempotency_retention: Duration,
    },
    /// In a database.
    Postgres(Box<PostgresConfig>),
}

/// The file of pets and API keys, and how it is used.
#[derive(Debug, Clone)]
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
        "storage.backend",
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

const URL: &str = "storage.postgres.url";
const MIGRATE_URL: &str = "storage.postgres.migrate_url";

const RETENTION: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(30 * 24);
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_mins(1);

/// The section `storage`.
#[derive(Debug, Clone)]
pub(super) struct StorageSection {
    pub(super) backend: StorageBackend,
    pub(super) sqlite: SqliteConfig,
    postgres: PostgresSettings,
}

impl StorageSection {
    pub(super) fn read(values: &mut Values) -> Self {
        let backend = values.get(
            "storage.backend",
            one_of([
                ("sqlite", StorageBackend::Sqlite),
                ("memory", StorageBackend::Memory),
                ("postgres", StorageBackend::Postgres),
            ]),
        );
        let retention = values.get("storage.idempotency_retention", duration(RETENTION));
        let path = values.get("storage.sqlite.path", path);
        Self {
            backend,
            sqlite: SqliteConfig {
                // Without a working directory, opening the file is the error.
                path: absolute(&path).unwrap_or(path),
                settings: SqliteSettings {
                    idempotency_retention: retention,
                    ..SqliteSettings::default()
                },
            },
            postgres: read_postgres(values, backend, retention),
        }
    }

    /// Reads the URLs, also those of a backend that is not selected. `None` is an error.
    pub(super) fn open(&self, files: &mut Files) -> Option<StorageConfig> {
        let postgres = self.open_postgres(files);
        Some(match self.backend {
            StorageBackend::Sqlite => StorageConfig::Sqlite(self.sqlite.clone()),
            StorageBackend::Memory => StorageConfig::Memory {
                idempotency_retention: self.sqlite.settings.idempotency_retention,
            },
            StorageBackend::Postgres => StorageConfig::Postgres(Box::new(postgres?)),
        })
    }

    /// Returns the database. `None`: it has no URL, or there is an error.
    pub(super) fn open_postgres(&self, files: &mut Files) -> Option<PostgresConfig> {
        let endpoint = open_endpoint(files, URL);
        let migrate_endpoint = open_endpoint(files, MIGRATE_URL);
        let endpoint = endpoint?;
        Some(PostgresConfig {
            migrate_endpoint: migrate_endpoint.unwrap_or_else(|| endpoint.clone()),
            endpoint,
            settings: self.postgres.clone(),
        })
    }
}

fn read_postgres(
    values: &mut Values,
    backend: StorageBackend,
    idempotency_retention: Duration,
) -> PostgresSettings {
    let timeout = values.get("storage.postgres.timeout", duration(TIMEOUT));
    let settings = PostgresSettings {
        schema: values.get(
            "storage.postgres.migrate",
            one_of([
                ("on-start", SchemaMode::Migrate),
                ("check", SchemaMode::Check),
            ]),
        ),
        connections_per_worker: values
            .get("storage.postgres.connections_per_worker", number(1..=64)),
        transaction_pooling: values.get(
            "storage.postgres.transaction_pooling",
            one_of([("true", true), ("false", false)]),
        ),
        connect_timeout: timeout,
        timeout,
        idempotency_retention,
        ..PostgresSettings::default()
    };
    if backend == StorageBackend::Postgres {
        let has_url = values.is_set(URL);
        values.require(
            has_url,
            &[URL],
            "is required if storage.backend is postgres",
        );
        let has_migrate_url = values.is_set(MIGRATE_URL);
        values.require(
            has_migrate_url || !settings.transaction_pooling,
            &[MIGRATE_URL],
            "is required if storage.postgres.transaction_pooling is true",
        );
    }
    settings
}

fn open_endpoint(files: &mut Files, name: &'static str) -> Option<PgEndpoint> {
    let url = files.secret(name)?;
    let endpoint = files.check(name, PgEndpoint::parse(&url))?;
    if let Some(authorities) = endpoint.authorities() {
        files.judge(authorities, false);
    }
    Some(endpoint)
}

impl StorageConfig {
    /// Returns the number of storage connections that this number of workers opens.
    pub(crate) fn connections(&self, workers: usize) -> usize {
        match self {
            // The few connections to a file do not depend on the workers.
            Self::Sqlite(_) | Self::Memory { .. } => 0,
            Self::Postgres(postgres) => workers * postgres.settings.connections_per_worker,
        }
    }
}

/// The backend, and where it keeps the pets.
impl fmt::Display for StorageConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(sqlite) => write!(formatter, "sqlite {}", sqlite.path.display()),
            Self::Memory { .. } => formatter.write_str("memory"),
            Self::Postgres(postgres) => write!(formatter, "postgres {}", postgres.endpoint),
        }
    }
}
