//! The storage of pets that is selected.

use animal_store_settings::{
    Setting, Values,
    parsers::{Parsed, one_of},
};

use crate::backends::{
    PetsBackend, RETENTION, memory::MemoryPetsConfig, postgres::PostgresConfig,
    sqlite::SqliteConfig,
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
        RETENTION,
        "24h",
        "Time from the first create for which an `Idempotency-Key` prevents a second pet, by the store's clock: it must \
         not jump ahead by more.",
    ),
];

const BACKEND: &str = "storage.backend";

impl StorageConfig {
    /// Reads the section, with the URLs, also those of a backend that is not selected. `None` is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let backend = values.get(BACKEND, StorageBackend::parse);
        let sqlite = SqliteConfig::read(values);
        let postgres = PostgresConfig::read(values);
        if backend == StorageBackend::Postgres {
            PostgresConfig::require(values);
        }
        Some(match backend {
            StorageBackend::Sqlite => Self::Sqlite(sqlite),
            StorageBackend::Memory => Self::Memory(MemoryPetsConfig::read(values)),
            StorageBackend::Postgres => Self::Postgres(Box::new(postgres?)),
        })
    }

    pub(crate) fn backend(&self) -> &dyn PetsBackend {
        match self {
            Self::Sqlite(sqlite) => sqlite,
            Self::Memory(memory) => memory,
            Self::Postgres(postgres) => &**postgres,
        }
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
