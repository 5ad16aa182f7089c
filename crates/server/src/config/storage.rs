mod postgres;

pub use self::postgres::PostgresConfig;
use super::{
    Key,
    values::{Values, one_of},
};

const BACKEND: Key = Key::new(
    "storage.backend",
    "memory",
    "Where animals are kept. `memory`: in the process, until it ends. `postgres`: in the database of \
     `storage.postgres.url`.",
);

pub(super) const KEYS: &[Key] = &[
    BACKEND,
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
    Memory,
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
        match values.read(&BACKEND, one_of(&[("memory", Backend::Memory), ("postgres", Backend::Postgres)]))? {
            Backend::Memory => Some(Self::Memory),
            Backend::Postgres => PostgresConfig::read(values).map(Box::new).map(Self::Postgres),
        }
    }

    /// How many connections to storage so many workers open.
    pub(crate) fn connections(&self, workers: usize) -> usize {
        match self {
            Self::Memory => 0,
            Self::Postgres(postgres) => workers * postgres.settings.connections_per_worker,
        }
    }
}
