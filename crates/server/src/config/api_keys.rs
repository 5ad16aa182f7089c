//! The source of API keys that is selected.

use std::net::SocketAddr;

use animal_store_settings::{
    Setting, Values,
    parsers::{one_of, optional},
};

use super::storage::StorageBackend;
use crate::backends::{
    ApiKeysBackend,
    memory::{MemoryApiKeysConfig, TOKENS},
    postgres::PostgresConfig,
    redis::RedisConfig,
    sqlite::SqliteConfig,
};

/// The source of API keys.
#[derive(Debug)]
pub(crate) enum ApiKeysConfig {
    Sqlite(SqliteConfig),
    Memory(MemoryApiKeysConfig),
    Postgres(Box<PostgresConfig>),
    Redis(Box<RedisConfig>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Memory,
    Postgres,
    Redis,
}

pub(super) const SETTINGS: &[Setting] = &[Setting::new(
    BACKEND,
    "",
    "Source of the API keys: `sqlite`, `postgres` or `redis`, which `animal-store keys` administers, or `memory`, \
     the tokens of `keys.memory.tokens`. Empty: `memory` if there are tokens, otherwise as `storage.backend`. \
     `postgres` is the database of the pets; with pets in it, `sqlite` is refused, because each instance would \
     have a file of its own.",
)];

const BACKEND: &str = "keys.backend";

impl ApiKeysConfig {
    /// Reads the section, with the secrets and the certificates, also those of a backend that is not selected. `None`
    /// is an error.
    pub(crate) fn read(values: &mut Values) -> Option<Self> {
        let backend = read_backend(values);
        let memory = MemoryApiKeysConfig::read(values);
        let redis = RedisConfig::read(values);
        if backend == Backend::Redis {
            RedisConfig::require(values);
        }
        match backend {
            Backend::Sqlite => Some(Self::Sqlite(SqliteConfig::read(values))),
            Backend::Memory => Some(Self::Memory(memory)),
            Backend::Postgres => PostgresConfig::read(values)
                .map(Box::new)
                .map(Self::Postgres),
            Backend::Redis => redis.map(Box::new).map(Self::Redis),
        }
    }

    pub(crate) fn backend(&self) -> &dyn ApiKeysBackend {
        match self {
            Self::Sqlite(sqlite) => sqlite,
            Self::Memory(memory) => memory,
            Self::Postgres(postgres) => &**postgres,
            Self::Redis(redis) => &**redis,
        }
    }
}

/// Requires tokens in memory if other machines can connect.
pub(super) fn require_tokens(values: &mut Values, listen: SocketAddr) {
    let is_memory = values.text(BACKEND) == "memory";
    values.require(
        !is_memory || listen.ip().is_loopback() || values.is_set(TOKENS),
        &[TOKENS, BACKEND],
        "is required unless http.listen is a loopback address",
    );
}

/// Returns the backend that is set, or that the tokens or the storage imply.
fn read_backend(values: &mut Values) -> Backend {
    let storage = StorageBackend::selected(values);
    if values.text(BACKEND).is_empty() {
        if values.is_set(TOKENS) {
            values.set(BACKEND, "memory", TOKENS);
        } else {
            values.set(BACKEND, storage.name(), "storage.backend");
        }
    }
    let backends = one_of(&[
        ("sqlite", Backend::Sqlite),
        ("memory", Backend::Memory),
        ("postgres", Backend::Postgres),
        ("redis", Backend::Redis),
    ]);
    // It is empty only in place of an invalid one.
    let backend = values
        .get(BACKEND, optional(backends))
        .unwrap_or(Backend::Memory);
    let is_in_postgres = storage == StorageBackend::Postgres;
    values.require(
        backend != Backend::Sqlite || !is_in_postgres,
        &[BACKEND, "storage.backend"],
        "cannot be sqlite if storage.backend is postgres: each instance would have a file of its own",
    );
    values.require(
        backend != Backend::Postgres || is_in_postgres,
        &[BACKEND, "storage.backend"],
        "cannot be postgres unless storage.backend is postgres: API keys are in the database of the pets",
    );
    backend
}
