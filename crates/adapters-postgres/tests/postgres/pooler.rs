//! A storage behind PgBouncer, which assigns a server connection to each transaction: results and side effects.

use std::ops::Deref;

use animal_store_adapters_postgres::diagnose;
use animal_store_app::{pet_repository_contract, ports::AddPet, test_support::new_pet};
use tokio::task::JoinSet;

use crate::{
    bulk::{bulk_with, record},
    diagnosis::problems,
    prelude::*,
    store::port_of,
};

/// State that the process left on a server connection. PgBouncer itself sets these settings for each client.
const LEFT_BEHIND: &str = "
    SELECT 'statement ' || name || ' ' || statement FROM pg_prepared_statements
    UNION ALL SELECT 'setting ' || name || ' ' || setting FROM pg_settings
        WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone',
            'IntervalStyle', 'standard_conforming_strings', 'extra_float_digits')
    UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

const UNFINISHED: &str = "
    SELECT state, query FROM pg_stat_activity WHERE datname = current_database()
    AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND state IS DISTINCT FROM 'idle'";

pub(crate) struct Pooled {
    store: Store,
    bouncer: PgBouncer,
    pub(crate) database: PgDatabase,
    pool_size: u32,
}

/// It is used like its storage.
impl Deref for Pooled {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Pooled {
    pub(crate) async fn with(pool_size: u32, settings: PostgresSettings) -> Self {
        let database = PgDatabase::new();
        let bouncer = PgBouncer::start(port_of(database.url()), "transaction", pool_size);
        let url = bouncer.url(database.name());
        let store = start_storage(&url, database.url(), settings).await;
        Self {
            store: store.expect("a storage"),
            bouncer,
            database,
            pool_size,
        }
    }

    /// The URL of the database through the pooler.
    pub(crate) fn url(&self) -> String {
        self.bouncer.url(self.database.name())
    }

    /// Returns the result of a query on each server connection of the pool.
    async fn on_each_connection(&self, sql: &str) -> Vec<Vec<String>> {
        let mut sessions = Vec::new();
        for _ in 0..self.pool_size {
            let session = SqlSession::at(&self.url()).await;
            // A transaction occupies a connection.
            session.run("BEGIN").await;
            sessions.push(session);
        }
        let mut results = Vec::new();
        for session in sessions {
            results.push(session.column(sql).await);
            session.run("COMMIT").await;
        }
        results
    }

    /// Waits until no transaction is open, and checks that no state is left on any connection.
    async fn leaves_nothing_behind(&self) {
        let none_is_open = async || self.database.sql(UNFINISHED).is_empty();
        wait_until("no open transaction", none_is_open).await;
        for left in self.on_each_connection(LEFT_BEHIND).await {
            assert_eq!(left, [""; 0]);
        }
    }
}

fn pooling() -> PostgresSettings {
    PostgresSettings {
        transaction_pooling: true,
        ..settings()
    }
}

/// A repository that shares one server connection with everything else of the storage.
async fn repository(idempotency_retention: Duration) -> (Arc<dyn PetRepository>, Pooled) {
    let settings = PostgresSettings {
        idempotency_retention,
        ..pooling()
    };
    let pooled = Pooled::with(1, settings).await;
    (Arc::new(pooled.storage.repository()), pooled)
}

pet_repository_contract!(repository);

#[tokio::test(flavor = "multi_thread")]
async fn many_workers_share_few_connections_and_leave_nothing_behind() {
    let settings = PostgresSettings {
        connections_per_worker: 8,
        ..pooling()
    };
    let pooled = Pooled::with(2, settings).await;
    let workers = [(); 4].map(|()| Arc::new(pooled.storage.repository()));
    let mut requests = JoinSet::new();
    for number in 0..80 {
        let worker = Arc::clone(&workers[number % workers.len()]);
        requests.spawn(async move {
            let added = worker.add(AddPet::new(new_pet())).await.expect("added").pet;
            let found = worker.find(added.id()).await.expect("found");
            assert_eq!(found.as_ref(), Some(&added));
            for (status, expected) in [(None, true), (Some(Sold), false)] {
                let list = worker.list(status, None, 1000).await.expect("a list");
                assert!(list.is_sorted_by_key(Pet::id), "{list:?}");
                assert_eq!(list.contains(&added), expected);
            }
        });
    }
    requests.join_all().await;
    let database = &pooled.database;
    assert_eq!(database.sql("SELECT count(*) FROM pets"), "80");
    assert_eq!(pooled.not_ready().await, None);
    pooled.leaves_nothing_behind().await;

    // Instances share a name: PgBouncer would change it for each transaction that follows one of another instance.
    let names = "SELECT DISTINCT application_name FROM pg_stat_activity
        WHERE application_name LIKE 'animal-store%' AND datname = current_database()";
    assert_eq!(database.sql(names), "animal-store");
    // PgBouncer itself sets the time zone for each client.
    let time_zone = database.sql("SHOW TimeZone");
    for found in pooled.on_each_connection("SHOW TimeZone").await {
        assert_eq!(found, [&*time_zone]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_session_mode_needs_no_setting() {
    let database = PgDatabase::new();
    let bouncer = PgBouncer::start(port_of(database.url()), "session", 10);
    let store = Store::at(&bouncer.url(database.name()), settings()).await;
    assert_eq!(store.list_find_add().await, [Success; 3]);
    assert_eq!(store.not_ready().await, None);
}

/// With one connection, an open transaction would block everything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_read_leaves_no_transaction_open() {
    let pooled = Pooled::with(1, pooling()).await;
    pooled.adds_and_finds().await;
    let observer = SqlSession::of(&pooled.database).await;
    let read = observer.block(|| pooled.list(None, 0, 10)).await;
    drop(read);
    observer.unlock().await;
    pooled.adds_and_finds().await;
    pooled.leaves_nothing_behind().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_access_and_a_diagnosis_through_a_pooler_leave_nothing_behind() {
    let pooled = Pooled::with(3, pooling()).await;
    let bulk = bulk_with(&pooled.url(), pooling());
    bulk.check_writable().await.expect("writable");
    bulk.add_pets(stored_pets([7, 8])).await.expect("added");
    let added = bulk.add_idempotency_records(vec![record(7)]).await;
    added.expect("added");
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    bulk.add_pets(stored_pets([9])).await.expect("added");
    let pets = snapshot.pets(None, 10).await;
    assert_eq!(pets.expect("pets"), stored_pets([7, 8]));
    let records = snapshot.idempotency_records(None, 10).await;
    assert_eq!(records.expect("records").len(), 1);
    drop(snapshot);
    let through = endpoint(&pooled.url());
    let direct = endpoint(pooled.database.url());
    let found = diagnose(&through, &direct, &pooling(), true).await;
    assert_eq!(problems(&found), [""; 0], "{found:#?}");
    pooled.leaves_nothing_behind().await;
}
