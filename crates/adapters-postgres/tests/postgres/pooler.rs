//! A storage behind PgBouncer, which assigns a server connection to each transaction: results and side effects.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::{PgPetRepository, PgStorage, PostgresSettings};
use animal_store_app::{
    pet_repository_contract,
    ports::{BulkStorage, PetRepository},
    test_support::stored_pets,
};
use animal_store_domain::{Pet, PetStatus};
use animal_store_test_servers::{PgBouncer, PgDatabase, PostgresServer};
use tokio::task::JoinSet;

use crate::{
    bulk::{bulk_with, record},
    outcomes::{Success, adds_and_finds, list_find_add, wait_until},
    sql_session::{SqlSession, client},
    store::{Store, endpoint, parts, settings, start_storage},
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
        let through = endpoint(&bouncer.url("postgres"));
        let direct = endpoint(&server.url("postgres"));
        let (storage, _) = start_storage(through, direct, settings)
            .await
            .expect("a storage");
        Self {
            server,
            bouncer,
            storage,
            pool_size: pool_size as usize,
        }
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
        wait_until("no open transaction", async || {
            self.server.sql("postgres", UNFINISHED).is_empty()
        })
        .await;
        for left in self.on_each_connection(LEFT_BEHIND).await {
            assert_eq!(left, [""; 0]);
        }
    }
}

pub(crate) fn pooling() -> PostgresSettings {
    PostgresSettings {
        transaction_pooling: true,
        ..settings()
    }
}

/// A repository that shares one server connection with everything else of the storage.
async fn repository(
    idempotency_retention: Duration,
) -> (Arc<dyn PetRepository>, (PgStorage, PgBouncer, PgDatabase)) {
    let database = PgDatabase::new();
    let bouncer = PgBouncer::start(parts(database.url()).1, "transaction", 1);
    let through = endpoint(&bouncer.url(database.name()));
    let settings = PostgresSettings {
        idempotency_retention,
        ..pooling()
    };
    let (storage, _) = start_storage(through, endpoint(database.url()), settings)
        .await
        .expect("a storage");
    (Arc::new(storage.repository()), (storage, bouncer, database))
}

pet_repository_contract!(repository);

#[tokio::test(flavor = "multi_thread")]
async fn many_workers_share_few_connections_and_leave_nothing_behind() {
    let pooled = Pooled::with(
        2,
        PostgresSettings {
            connections_per_worker: 8,
            ..pooling()
        },
    )
    .await;
    let workers: Vec<_> = (0..4).map(|_| pooled.repository()).collect();
    let mut requests = JoinSet::new();
    for number in 0..80 {
        let worker = Arc::clone(&workers[number % workers.len()]);
        requests.spawn(async move {
            let added = adds_and_finds(&worker).await;
            for (status, expected) in [(None, true), (Some(PetStatus::Sold), false)] {
                let list = worker.list(status, None, 1000).await.expect("a list");
                assert!(list.is_sorted_by_key(Pet::id), "{list:?}");
                assert_eq!(list.contains(&added), expected);
            }
        });
    }
    requests.join_all().await;
    assert_eq!(
        pooled.server.sql("postgres", "SELECT count(*) FROM pets"),
        "80"
    );
    pooled.storage.readiness().check().await.expect("ready");

    pooled.leaves_nothing_behind().await;
    // Instances share a name: PgBouncer would change it for each transaction that follows one of another instance.
    let names = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE application_name LIKE 'animal-store%'";
    assert_eq!(pooled.server.sql("postgres", names), "animal-store");
    // PgBouncer itself sets the time zone for each client.
    let time_zone = pooled.server.sql("postgres", "SHOW TimeZone");
    for found in pooled.on_each_connection("SHOW TimeZone").await {
        assert_eq!(found, [&*time_zone]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_session_mode_needs_no_setting() {
    let server = PostgresServer::start();
    let bouncer = PgBouncer::start(server.port(), "session", 10);
    let store = Store::at(&bouncer.url("postgres"), settings()).await;
    assert_eq!(list_find_add(&store.repository).await, [Success; 3]);
    store.storage.readiness().check().await.expect("ready");
}

/// With one connection, an open transaction would block everything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_read_leaves_no_transaction_open() {
    let pooled = Pooled::with(1, pooling()).await;
    let repository = pooled.repository();
    let added = adds_and_finds(&repository).await;
    let observer = SqlSession::at(&pooled.server.url("postgres")).await;
    observer.lock().await;
    let reader = Arc::clone(&repository);
    let read = tokio::spawn(async move { reader.list(None, None, 10).await });
    observer.wait_for_table_locks(1).await;
    read.abort();
    assert!(read.await.expect_err("it was dropped").is_cancelled());
    observer.unlock().await;
    assert_eq!(
        repository.find(added.id()).await.expect("found"),
        Some(added)
    );
    pooled.leaves_nothing_behind().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_access_through_a_pooler_leaves_nothing_behind() {
    let pooled = Pooled::with(3, pooling()).await;
    let bulk = bulk_with(&pooled.url(), pooling());
    bulk.check_writable().await.expect("writable");
    bulk.add_pets(stored_pets([7, 8])).await.expect("added");
    bulk.add_idempotency_records(vec![record("1", 7, Duration::from_hours(1))])
        .await
        .expect("added");
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    bulk.add_pets(stored_pets([9])).await.expect("added");
    let pets = snapshot.pets(None, 10).await;
    assert_eq!(pets.expect("pets"), stored_pets([7, 8]));
    let records = snapshot.idempotency_records(None, 10).await;
    assert_eq!(records.expect("records").len(), 1);
    drop(snapshot);
    pooled.leaves_nothing_behind().await;
}
