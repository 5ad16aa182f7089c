//! A storage behind PgBouncer, which assigns a server connection to each transaction.

use std::sync::Arc;

use animal_store_adapters_postgres::{PgPetRepository, PgStorage, PostgresSettings};
use animal_store_test_servers::{PgBouncer, PostgresServer};

use crate::{
    outcomes::eventually,
    sql_session::client,
    store::{endpoint, settings, start_storage},
};

/// State that the process left on a server connection. PgBouncer itself sets these settings for each client.
const LEFT_BEHIND: &str = "
    SELECT 'statement ' || name || ' ' || statement FROM pg_prepared_statements
    UNION ALL SELECT 'setting ' || name || ' ' || setting FROM pg_settings
        WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone',
            'IntervalStyle', 'standard_conforming_strings', 'extra_float_digits')
    UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory'";

const UNFINISHED: &str = "
    SELECT state, query FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state IS DISTINCT FROM 'idle'";

pub(crate) struct Pooled {
    pub(crate) server: PostgresServer,
    bouncer: PgBouncer,
    pub(crate) storage: PgStorage,
    pool_size: usize,
}

impl Pooled {
    pub(crate) async fn with(pool_size: u32, settings: PostgresSettings) -> Self {
        let server = PostgresServer::start();
        let bouncer = PgBouncer::start(server.port(), "transaction", pool_size);
        let (through, direct) = (endpoint(&bouncer.url("postgres")), endpoint(&server.url("postgres")));
        let (storage, _) = start_storage(through, direct, settings).await.expect("a storage");
        Self { server, bouncer, storage, pool_size: pool_size as usize }
    }

    /// The URL of the database through the pooler.
    pub(crate) fn url(&self) -> String {
        self.bouncer.url("postgres")
    }

    pub(crate) fn repository(&self) -> Arc<PgPetRepository> {
        Arc::new(self.storage.repository())
    }

    /// Returns the result of a query on each server connection of the pool.
    pub(crate) async fn on_each_connection(&self, sql: &str) -> Vec<Vec<String>> {
        let mut clients = Vec::new();
        for _ in 0..self.pool_size {
            let client = client(&self.bouncer.url("postgres")).await;
            // A transaction occupies a connection.
            client.batch_execute("BEGIN").await.expect("a transaction");
            clients.push(client);
        }
        let mut results = Vec::new();
        for client in clients {
            let rows = client.query_typed(sql, &[]).await.expect("rows");
            results.push(rows.iter().map(|row| row.get(0)).collect());
            client.batch_execute("COMMIT").await.expect("committed");
        }
        results
    }

    /// Waits until no transaction is open, and checks that no state is left on any connection.
    pub(crate) async fn leaves_nothing_behind(&self) {
        eventually("no open transaction", async || self.server.sql("postgres", UNFINISHED).is_empty()).await;
        for left in self.on_each_connection(LEFT_BEHIND).await {
            assert_eq!(left, [""; 0]);
        }
    }
}

pub(crate) fn pooling() -> PostgresSettings {
    PostgresSettings { transaction_pooling: true, ..settings() }
}
