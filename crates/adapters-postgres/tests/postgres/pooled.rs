//! A storage behind PgBouncer, which gives each transaction another connection of the server.

use std::{sync::Arc, time::Instant};

use animal_store_adapters_postgres::{PgPetRepository, PgStorage, PostgresSettings, WriterEnd};
use animal_store_test_servers::{PgBouncer, PostgresServer};

use crate::{
    calls::{PATIENCE, a_moment},
    store::{client, endpoint, settings},
};

/// What the process leaves on connections of the server. Those of PgBouncer are set by it for each client.
pub(crate) const LEFT_BEHIND: &str = "
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
    _writer_end: WriterEnd,
}

impl Pooled {
    pub(crate) async fn with(pool_size: u32, settings: PostgresSettings) -> Self {
        let server = PostgresServer::start();
        let bouncer = PgBouncer::start(server.port(), "transaction", pool_size);
        let (through, direct) = (endpoint(&bouncer.url("postgres")), endpoint(&server.url("postgres")));
        let (storage, writer_end) = PgStorage::start(through, direct, settings).await.expect("a storage");
        Self { server, bouncer, storage, _writer_end: writer_end }
    }

    pub(crate) fn repository(&self) -> Arc<PgPetRepository> {
        Arc::new(self.storage.repository())
    }

    /// What another client finds on each of as many connections of the server.
    pub(crate) async fn through_the_pooler(&self, connections: usize, sql: &str) -> Vec<Vec<String>> {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = client(&self.bouncer.url("postgres")).await;
            // Each keeps one for itself.
            client.batch_execute("BEGIN").await.expect("a transaction");
            clients.push(client);
        }
        let mut answers = Vec::new();
        for client in clients {
            let rows = client.query_typed(sql, &[]).await.expect("rows");
            answers.push(rows.iter().map(|row| row.get(0)).collect());
            client.batch_execute("COMMIT").await.expect("its end");
        }
        answers
    }

    pub(crate) async fn comes_to_rest(&self) {
        let start = Instant::now();
        loop {
            let unfinished = self.server.sql("postgres", UNFINISHED);
            if unfinished.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{unfinished}");
            a_moment().await;
        }
    }
}

pub(crate) fn pooling() -> PostgresSettings {
    PostgresSettings { transaction_pooling: true, ..settings() }
}
