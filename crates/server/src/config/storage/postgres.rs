use std::time::Duration;

use animal_store_adapters_postgres::{PgEndpoint, PostgresSettings, SchemaMode};

use crate::config::{
    Key,
    values::{Values, duration, number, one_of},
};

pub(super) const URL: Key = Key::secret(
    "storage.postgres.url",
    "`postgres://[user[:password]@]host[:port]/database[?option=value&…]`, with libpq's `sslmode`, `sslrootcert` and \
     others; see [operations](operations.md). Required by the backend `postgres`.",
);
pub(super) const MIGRATE_URL: Key = Key::secret(
    "storage.postgres.migrate_url",
    "The URL by which migrations are run, where that is another one: past a pooler, or as a user who may create tables.",
);
pub(super) const MIGRATE: Key = Key::new(
    "storage.postgres.migrate",
    "on-start",
    "`on-start`: run the migrations that the database has not seen, before the first request. `check`: refuse to start \
     where there are some.",
);
pub(super) const REQUIRED_AT_START: Key = Key::new(
    "storage.postgres.required_at_start",
    "false",
    "`true`: refuse to start where PostgreSQL cannot be reached. `false`: start, be not ready, and keep trying.",
);
pub(super) const CONNECTIONS_PER_WORKER: Key = Key::new(
    "storage.postgres.connections_per_worker",
    "2",
    "Connections for reads that each of `http.workers` opens. Many reads are under way on each at a time. Two more \
     connections write, and one is for `/ready`.",
);
pub(super) const TRANSACTION_POOLING: Key = Key::new(
    "storage.postgres.transaction_pooling",
    "false",
    "`true` behind a pooler that gives each transaction another connection, such as PgBouncer: nothing stays prepared, \
     and each connection carries one read at a time, in a transaction of its own. `storage.postgres.migrate_url` is \
     required then, and has to lead past the pooler.",
);
pub(super) const CONNECT_TIMEOUT: Key = Key::new(
    "storage.postgres.connect_timeout",
    "2s",
    "For opening a connection to PostgreSQL; each host of the URL has an equal share of it.",
);
pub(super) const TIMEOUT: Key = Key::new(
    "storage.postgres.timeout",
    "2s",
    "For each answer of PostgreSQL; later, requests are answered 503 and the connection is replaced. PostgreSQL itself \
     is told to give up after three quarters of it. A create may wait as long again for the commits before its own, and a \
     read with `storage.postgres.transaction_pooling` for those before it.",
);
pub(super) const MAX_WAITING_CREATES: Key = Key::new(
    "storage.postgres.max_waiting_creates",
    "1000",
    "Creates that wait for the commit before theirs. Those beyond are answered 503 `overloaded` at once. Creates with an \
     `Idempotency-Key` are counted apart.",
);

/// Animals in PostgreSQL.
#[derive(Debug)]
pub struct PostgresConfig {
    /// The database.
    pub endpoint: PgEndpoint,
    /// The same, for migrations.
    pub migrate_endpoint: PgEndpoint,
    /// How it is used.
    pub settings: PostgresSettings,
}

impl PostgresConfig {
    pub(super) fn read(values: &mut Values, idempotency_retention: Option<Duration>) -> Option<Self> {
        let endpoint = endpoint(values, &URL);
        if matches!(endpoint, Ok(None)) {
            values.problem(&URL, "is required where storage.backend is postgres");
        }
        let migrate_endpoint = self::endpoint(values, &MIGRATE_URL);
        let schema = values.read(&MIGRATE, one_of(&[("on-start", SchemaMode::Migrate), ("check", SchemaMode::Check)]));
        let required_at_start = values.read(&REQUIRED_AT_START, boolean());
        let connections_per_worker = values.read(&CONNECTIONS_PER_WORKER, number(1..=64));
        let transaction_pooling = values.read(&TRANSACTION_POOLING, boolean());
        let connect_timeout =
            values.read(&CONNECT_TIMEOUT, duration(Duration::from_millis(10)..=Duration::from_mins(1)));
        let timeout = values.read(&TIMEOUT, duration(Duration::from_millis(10)..=Duration::from_mins(1)));
        let max_waiting_creates = values.read(&MAX_WAITING_CREATES, number(1..=100_000));
        if transaction_pooling == Some(true) && matches!(migrate_endpoint, Ok(None)) {
            values.problem(&MIGRATE_URL, "is required where storage.postgres.transaction_pooling is true");
        }
        let endpoint = endpoint.ok()??;
        Some(Self {
            migrate_endpoint: migrate_endpoint.ok()?.unwrap_or_else(|| endpoint.clone()),
            endpoint,
            settings: PostgresSettings {
                schema: schema?,
                required_at_start: required_at_start?,
                connections_per_worker: connections_per_worker?,
                transaction_pooling: transaction_pooling?,
                connect_timeout: connect_timeout?,
                timeout: timeout?,
                max_waiting_creates: max_waiting_creates?,
                start_timeout: PostgresSettings::START_TIMEOUT,
                idempotency_retention: idempotency_retention?,
            },
        })
    }
}

/// What the key says; `Err` where that is a problem.
fn endpoint(values: &mut Values, key: &Key) -> Result<Option<PgEndpoint>, ()> {
    let Some(url) = values.read_secret(key) else { return Ok(None) };
    PgEndpoint::parse(&url).map(Some).map_err(|error| values.problem(key, &error.to_string()))
}

fn boolean() -> impl FnOnce(&str) -> Result<bool, String> {
    one_of(&[("true", true), ("false", false)])
}
