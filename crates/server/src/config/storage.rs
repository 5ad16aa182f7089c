pub(super) mod postgres;
pub(super) mod sqlite;

use std::{fmt, time::Duration};

use self::{postgres::PostgresConfig, sqlite::SqliteConfig};
use super::{
    key::{Key, keys},
    values::{Values, duration, one_of},
};

keys! {
    BACKEND: new("storage.backend", "sqlite",
        "Storage of the pets. `sqlite`: in the file `storage.sqlite.path`. `postgres`: in the database of \
         `storage.postgres.url`. `memory`: in the process, lost when it ends.");
    IDEMPOTENCY_RETENTION: new("storage.idempotency_retention", "24h",
        "Time for which an `Idempotency-Key` prevents a second pet, counted from the first create.");
}

#[derive(Debug)]
pub(crate) enum StorageConfig {
    Sqlite(SqliteConfig),
    Memory { idempotency_retention: Duration },
    Postgres(Box<PostgresConfig>),
}

/// The values of the section.
pub(super) struct Storage {
    pub(super) backend: StorageBackend,
    /// The file, which API keys can use with another storage as well.
    pub(super) sqlite: SqliteConfig,
    /// `None` if a required value is missing, which is an error.
    pub(super) config: Option<StorageConfig>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageBackend {
    Sqlite,
    Memory,
    Postgres,
}

impl Storage {
    pub(super) fn read(values: &mut Values) -> Self {
        let backend = values.read(
            &BACKEND,
            one_of(&[
                ("sqlite", StorageBackend::Sqlite),
                ("memory", StorageBackend::Memory),
                ("postgres", StorageBackend::Postgres),
            ]),
        );
        let retention =
            values.read(&IDEMPOTENCY_RETENTION, duration(Duration::from_secs(1)..=Duration::from_hours(30 * 24)));
        let sqlite = SqliteConfig::read(values, retention);
        let postgres = PostgresConfig::read(values, retention, backend == StorageBackend::Postgres);
        let config = match backend {
            StorageBackend::Sqlite => Some(StorageConfig::Sqlite(sqlite.clone())),
            StorageBackend::Memory => Some(StorageConfig::Memory { idempotency_retention: retention }),
            StorageBackend::Postgres => postgres.map(Box::new).map(StorageConfig::Postgres),
        };
        Self { backend, sqlite, config }
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

impl StorageConfig {
    /// How long an idempotency key is kept.
    pub(crate) fn idempotency_retention(&self) -> Duration {
        match self {
            Self::Sqlite(sqlite) => sqlite.settings.idempotency_retention,
            Self::Memory { idempotency_retention } => *idempotency_retention,
            Self::Postgres(postgres) => postgres.settings.idempotency_retention,
        }
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
