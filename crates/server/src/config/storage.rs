mod postgres;

use std::time::Duration;

pub use self::postgres::PostgresConfig;
use super::{
    Key,
    values::{Values, duration, one_of},
};

const BACKEND: Key = Key::new(
    "storage.backend",
    "memory",
    "Where animals are kept. `memory`: in the process, until it ends. `postgres`: in the database of \
     `storage.postgres.url`.",
);

const IDEMPOTENCY_RETENTION: Key = Key::new(
    "storage.idempotency_retention",
    "24h",
    "How long an `Idempotency-Key` keeps a create from adding a second animal, counted from the first.",
);

pub(super) const KEYS: &[Key] = &[
    BACKEND,
    IDEMPOTENCY_RETENTION,
    postgres::URL,
    postgres::MIGRATE_URL,
    postgres::MIGRATE,
    postgres::REQUIRED_AT_START,
    postgres::CONNECTIONS_PER_WORKER,
    postgres::TRANSACTION_POOLING,
    postgres::CONNECT_TIMEOUT,
    postgres::TIMEOUT,
    postgres::MAX_WAITING_CREATES,
];

/// Where animals are kept.
#[derive(Debug)]
pub enum StorageConfig {
    /// In this process, until it ends.
    Memory {
        /// How long idempotency keys are kept.
        idempotency_retention: Duration,
    },
    /// In PostgreSQL.
    Postgres(Box<PostgresConfig>),
}

#[derive(Clone)]
enum Backend {
    Memory,
    Postgres,
}

impl StorageConfig {
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let backend = values.read(&BACKEND, one_of(&[("memory", Backend::Memory), ("postgres", Backend::Postgres)]));
        let retention =
            values.read(&IDEMPOTENCY_RETENTION, duration(Duration::from_secs(1)..=Duration::from_hours(30 * 24)));
        match backend? {
            Backend::Memory => Some(Self::Memory { idempotency_retention: retention? }),
            Backend::Postgres => PostgresConfig::read(values, retention).map(Box::new).map(Self::Postgres),
        }
    }

    /// How many connections to storage so many workers open.
    pub(crate) fn connections(&self, workers: usize) -> usize {
        match self {
            Self::Memory { .. } => 0,
            Self::Postgres(postgres) => workers * postgres.settings.connections_per_worker,
        }
    }
}
