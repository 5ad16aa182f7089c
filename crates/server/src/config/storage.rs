//! The keys of the storage of pets, and of the SQLite file that API keys can be in as well.

use std::{
    fmt,
    path::{PathBuf, absolute},
    time::Duration,
};

use animal_store_adapters_postgres::{PgEndpoint, PostgresSettings, SchemaMode};
use animal_store_adapters_sqlite::SqliteSettings;

use super::{
    declaration::{duration, keys, number, one_of, parsed},
    values::Values,
};

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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageBackend {
    Sqlite,
    Memory,
    Postgres,
}

const RETENTION: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_hours(30 * 24);

/// Reads the keys that pets and API keys have in common.
pub(super) fn read_common(values: &mut Values) -> (StorageBackend, SqliteConfig) {
    use StorageBackend::{Memory, Postgres, Sqlite};
    let backends = one_of([
        ("sqlite", Sqlite),
        ("memory", Memory),
        ("postgres", Postgres),
    ]);
    let file = parsed("the path of a file", |path: &PathBuf| {
        !path.as_os_str().is_empty()
    });
    keys! { values,
        /// Storage of the pets: `sqlite`, `postgres`, or `memory`, which is lost when the process ends.
        backend = value("storage.backend", "sqlite", backends);
        /// Time from the first create for which an `Idempotency-Key` prevents a second pet.
        idempotency_retention = value("storage.idempotency_retention", "24h", duration(RETENTION));
        /// File of the backends `sqlite`, relative to the working directory. The first start creates it.
        path = value("storage.sqlite.path", "animal-store.db", file);
    }
    let settings = SqliteSettings {
        idempotency_retention,
        ..SqliteSettings::default()
    };
    // Without a working directory, opening the file is the error.
    (
        backend,
        SqliteConfig {
            path: absolute(&path).unwrap_or(path),
            settings,
        },
    )
}

impl StorageConfig {
    /// Returns `None` if a required value is missing, which is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let (backend, sqlite) = read_common(values);
        let idempotency_retention = sqlite.settings.idempotency_retention;
        let postgres = PostgresConfig::read(
            values,
            idempotency_retention,
            backend == StorageBackend::Postgres,
        );
        Some(match backend {
            StorageBackend::Sqlite => Self::Sqlite(sqlite),
            StorageBackend::Memory => Self::Memory {
                idempotency_retention,
            },
            StorageBackend::Postgres => Self::Postgres(Box::new(postgres?)),
        })
    }

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

impl PostgresConfig {
    /// `selected`: whether the values that the backend requires must be set.
    pub(super) fn read(
        values: &mut Values,
        idempotency_retention: Duration,
        selected: bool,
    ) -> Option<Self> {
        let boolean = one_of([("true", true), ("false", false)]);
        let modes = one_of([
            ("on-start", SchemaMode::Migrate),
            ("check", SchemaMode::Check),
        ]);
        keys! { values,
            /// `postgres://[user[:password]@]host[:port]/database[?option=value&…]`, with options of libpq such as
            /// `sslmode` and `sslrootcert`. Required by the backend `postgres`.
            url = secret("storage.postgres.url");
            /// URL for migrations, if it differs: one that bypasses a pooler, or one of a user that may create tables.
            migrate_url = secret("storage.postgres.migrate_url");
            /// `on-start`: run pending migrations before the first request. `check`: refuse to start with pending ones.
            schema = value("storage.postgres.migrate", "on-start", modes);
            /// Number of read connections per worker thread. The process has three more, for creates and `/ready`, and
            /// one for API keys in PostgreSQL.
            connections_per_worker = value("storage.postgres.connections_per_worker", "2", number(1..=64));
            /// `true` behind a pooler in transaction mode, such as PgBouncer: nothing stays prepared, and each
            /// statement of reads is a transaction. Requires `storage.postgres.migrate_url`, which must bypass the pooler.
            transaction_pooling = value("storage.postgres.transaction_pooling", "false", boolean);
            /// Timeout for each response of PostgreSQL, and for opening a connection, which the hosts of the URL share
            /// equally. After it, requests get 503 and the connection is replaced. PostgreSQL ends a statement after
            /// three quarters of it. A read has it including its time in the queue, a create without.
            timeout = value("storage.postgres.timeout", "2s",
                duration(Duration::from_millis(10)..=Duration::from_mins(1)));
        }
        let [url_key, migrate_url_key] = ["storage.postgres.url", "storage.postgres.migrate_url"];
        values.require(
            url.is_some() || !selected,
            &[url_key],
            "is required if storage.backend is postgres",
        );
        values.require(
            migrate_url.is_some() || !transaction_pooling || !selected,
            &[migrate_url_key],
            "is required if storage.postgres.transaction_pooling is true",
        );
        let endpoint = url.and_then(|url| values.checked(url_key, PgEndpoint::parse(&url)));
        let migrate_endpoint =
            migrate_url.and_then(|url| values.checked(migrate_url_key, PgEndpoint::parse(&url)));
        for endpoint in [&endpoint, &migrate_endpoint].into_iter().flatten() {
            if let Some(authorities) = endpoint.authorities() {
                values.judge(authorities, false);
            }
        }
        let settings = PostgresSettings {
            schema,
            connections_per_worker,
            transaction_pooling,
            connect_timeout: timeout,
            timeout,
            idempotency_retention,
            ..PostgresSettings::default()
        };
        let endpoint = endpoint?;
        let migrate_endpoint = migrate_endpoint.unwrap_or_else(|| endpoint.clone());
        Some(Self {
            endpoint,
            migrate_endpoint,
            settings,
        })
    }
}
