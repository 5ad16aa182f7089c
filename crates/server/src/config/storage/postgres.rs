use std::time::Duration;

use animal_store_adapters_postgres::{PgEndpoint, PostgresSettings, SchemaMode};

use crate::config::{
    key::{Key, keys},
    values::{Values, boolean, duration, number, one_of},
};

keys! {
    URL: secret("storage.postgres.url",
        "`postgres://[user[:password]@]host[:port]/database[?option=value&…]`, with options of libpq such as \
         `sslmode` and `sslrootcert`; see [PostgreSQL](operations/postgresql.md). Required by the backend `postgres`.");
    MIGRATE_URL: secret("storage.postgres.migrate_url",
        "URL for migrations, if it differs: one that bypasses a pooler, or one of a user that may create tables.");
    MIGRATE: new("storage.postgres.migrate", "on-start",
        "`on-start`: run pending migrations before the first request. `check`: refuse to start if migrations are \
         pending.");
    REQUIRED_AT_START: new("storage.postgres.required_at_start", "false",
        "`true`: refuse to start if PostgreSQL is unavailable. `false`: start, report not ready, and retry.");
    CONNECTIONS_PER_WORKER: new("storage.postgres.connections_per_worker", "2",
        "Number of read connections per worker thread (`http.workers`). Reads that wait share a statement. Two more \
         connections write, and one is for `/ready`.");
    TRANSACTION_POOLING: new("storage.postgres.transaction_pooling", "false",
        "`true` behind a pooler in transaction mode, such as PgBouncer: nothing stays prepared, and each batch of \
         reads is a transaction. Requires `storage.postgres.migrate_url`, which must bypass the pooler.");
    CONNECT_TIMEOUT: new("storage.postgres.connect_timeout", "2s",
        "Timeout for opening a connection to PostgreSQL. The hosts of the URL share it equally.");
    TIMEOUT: new("storage.postgres.timeout", "2s",
        "Timeout for each response of PostgreSQL. After it, requests get 503 and the connection is replaced. The \
         statement timeout in PostgreSQL is three quarters of it. A read gets its response within it, including its \
         time in the queue. A create can wait up to this long for earlier commits before it is sent.");
    MAX_WAITING_READS: new("storage.postgres.max_waiting_reads", "2000",
        "Maximum number of reads that a worker keeps in a queue while earlier reads are in flight. Further reads get \
         503 `overloaded` at once. Gets, lists, and lists by status have a queue of this size each.");
    MAX_WAITING_CREATES: new("storage.postgres.max_waiting_creates", "1000",
        "Maximum number of creates in the queue. Further creates get 503 `overloaded` at once. Creates with an \
         `Idempotency-Key` have their own queue of this size.");
}

#[derive(Debug)]
pub(crate) struct PostgresConfig {
    pub(crate) endpoint: PgEndpoint,
    pub(crate) migrate_endpoint: PgEndpoint,
    pub(crate) settings: PostgresSettings,
}

const MIN_TIMEOUT: Duration = Duration::from_millis(10);
const MAX_TIMEOUT: Duration = Duration::from_mins(1);

impl PostgresConfig {
    /// `selected`: whether the values that the backend requires must be set.
    pub(super) fn read(values: &mut Values, idempotency_retention: Duration, selected: bool) -> Option<Self> {
        let [endpoint, migrate_endpoint] = [&URL, &MIGRATE_URL].map(|key| endpoint(values, key));
        values.require(endpoint.is_some() || !selected, &[&URL], "is required if storage.backend is postgres");
        let settings = PostgresSettings {
            schema: values.read(&MIGRATE, one_of(&[("on-start", SchemaMode::Migrate), ("check", SchemaMode::Check)])),
            required_at_start: values.read(&REQUIRED_AT_START, boolean),
            connections_per_worker: values.read(&CONNECTIONS_PER_WORKER, number(1..=64)),
            transaction_pooling: values.read(&TRANSACTION_POOLING, boolean),
            connect_timeout: values.read(&CONNECT_TIMEOUT, duration(MIN_TIMEOUT..=MAX_TIMEOUT)),
            timeout: values.read(&TIMEOUT, duration(MIN_TIMEOUT..=MAX_TIMEOUT)),
            max_waiting_reads: values.read(&MAX_WAITING_READS, number(1..=100_000)),
            max_waiting_creates: values.read(&MAX_WAITING_CREATES, number(1..=100_000)),
            idempotency_retention,
        };
        values.require(
            migrate_endpoint.is_some() || !settings.transaction_pooling || !selected,
            &[&MIGRATE_URL],
            "is required if storage.postgres.transaction_pooling is true",
        );
        let endpoint = endpoint?;
        let migrate_endpoint = migrate_endpoint.unwrap_or_else(|| endpoint.clone());
        Some(Self { endpoint, migrate_endpoint, settings })
    }
}

/// Parses a URL, if it is set. Adds an error if it is not valid.
fn endpoint(values: &mut Values, key: &Key) -> Option<PgEndpoint> {
    let url = values.read_secret(key)?;
    PgEndpoint::parse(&url).map_err(|error| values.add_error(key, &error.to_string())).ok()
}
