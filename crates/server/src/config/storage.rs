pub(super) mod postgres;

use std::time::Duration;

use self::postgres::PostgresConfig;
use super::{
    key::{Key, keys},
    values::{Values, duration, one_of},
};

keys! {
    BACKEND: new("storage.backend", "memory",
        "Storage of the pets. `memory`: in the process, lost when it ends. `postgres`: in the database of \
         `storage.postgres.url`.");
    IDEMPOTENCY_RETENTION: new("storage.idempotency_retention", "24h",
        "Time for which an `Idempotency-Key` prevents a second pet, counted from the first create.");
}

#[derive(Debug)]
pub(crate) enum StorageConfig {
    Memory { idempotency_retention: Duration },
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
        let postgres = PostgresConfig::read(values, retention, matches!(backend, Backend::Postgres));
        match backend {
            Backend::Memory => Some(Self::Memory { idempotency_retention: retention }),
            Backend::Postgres => postgres.map(Box::new).map(Self::Postgres),
        }
    }

    /// Returns the number of storage connections that this number of workers opens.
    pub(crate) fn connections(&self, workers: usize) -> usize {
        match self {
            Self::Memory { .. } => 0,
            Self::Postgres(postgres) => workers * postgres.settings.connections_per_worker,
        }
    }
}
