//! PgBouncer, which gives each transaction another connection of the server.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::{PgPetRepository, PgSettings, PgStorage, WriterEnd};
use animal_store_app::{
    pet_repository_contract,
    ports::{AddPet, PetRepository, StorageError},
    test_support::new_pet,
};
use animal_store_domain::PetStatus;
use animal_store_test_servers::{PgBouncer, PostgresServer};
use tokio::task::JoinSet;

use crate::store::{PATIENCE, a_moment, endpoint, settings};

/// What the process leaves on connections of the server. Those of PgBouncer are set by it for each client.
const LEFT_BEHIND: &str = "
    SELECT 'statement ' || name || ' ' || statement FROM pg_prepared_statements
    UNION ALL SELECT 'setting ' || name || ' ' || setting FROM pg_settings
        WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone',
            'IntervalStyle', 'standard_conforming_strings', 'extra_float_digits')
    UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory'";

const UNFINISHED: &str = "
    SELECT state, query FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state IS DISTINCT FROM 'idle'";

struct Pooled {
    server: PostgresServer,
    bouncer: PgBouncer,
    storage: PgStorage,
    _writer_end: WriterEnd,
}

impl Pooled {
    async fn with(pool_size: u32, settings: PgSettings) -> Self {
        let server = PostgresServer::start();
        let bouncer = PgBouncer::start(server.port(), pool_size);
        let (through, direct) = (endpoint(&bouncer.url("postgres")), endpoint(&server.url("postgres")));
        let (storage, writer_end) = PgStorage::start(through, direct, settings).await.expect("a storage");
        Self { server, bouncer, storage, _writer_end: writer_end }
    }

    fn repository(&self) -> Arc<PgPetRepository> {
        Arc::new(self.storage.repository())
    }

    /// What another client finds on each of as many connections of the server.
    async fn through_the_pooler(&self, connections: usize, sql: &str) -> Vec<Vec<String>> {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let url = self.bouncer.url("postgres");
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connected");
            tokio::spawn(connection);
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

    async fn comes_to_rest(&self) {
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

fn pooling() -> PgSettings {
    PgSettings { transaction_pooling: true, ..settings() }
}

mod one_connection {
    use super::*;

    async fn repository() -> (Arc<dyn PetRepository>, Pooled) {
        let pooled = Pooled::with(1, pooling()).await;
        (pooled.repository(), pooled)
    }

    pet_repository_contract!(repository);
}

mod without_a_pooler {
    use animal_store_test_servers::PgDatabase;

    use super::*;
    use crate::store::Store;

    async fn repository() -> (Arc<dyn PetRepository>, (PgStorage, PgDatabase)) {
        let database = PgDatabase::new();
        let store = Store::at(database.url(), pooling()).await;
        (store.repository, (store.storage, database))
    }

    pet_repository_contract!(repository);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_share_few_connections_and_leave_nothing_behind() {
    let pooled = Pooled::with(2, PgSettings { connections_per_worker: 8, ..pooling() }).await;
    let workers: Vec<_> = (0..4).map(|_| pooled.repository()).collect();
    let mut requests = JoinSet::new();
    for number in 0..200 {
        let worker = Arc::clone(&workers[number % workers.len()]);
        requests.spawn(async move {
            let added = worker.add(AddPet { pet: new_pet() }).await.expect("added");
            assert_eq!(worker.find(added.id()).await.expect("found").as_ref(), Some(&added));
            let list = worker.list(Some(PetStatus::Available), None, 1000).await.expect("a list");
            assert!(list.is_sorted_by_key(|pet| pet.id()) && list.contains(&added));
            assert_eq!(worker.list(Some(PetStatus::Sold), None, 1000).await.expect("a list"), []);
        });
    }
    requests.join_all().await;
    assert_eq!(workers[0].list(None, None, 1000).await.expect("a list").len(), 200);
    pooled.storage.readiness().check().await.expect("it is ready");

    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(2, LEFT_BEHIND).await, [[""; 0], [""; 0]]);
    for (setting, default) in [
        ("statement_timeout", "0"),
        ("plan_cache_mode", "auto"),
        ("enable_seqscan", "on"),
        ("transaction_read_only", "off"),
        ("lock_timeout", "0"),
        ("TimeZone", &*pooled.server.sql("postgres", "SHOW TimeZone")),
    ] {
        let found = pooled.through_the_pooler(2, &format!("SHOW {setting}")).await;
        assert_eq!(found, [[default], [default]], "{setting}");
    }
}

/// With one connection, a transaction that is left open would keep everybody out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_dropped_leaves_no_transaction_open() {
    let pooled = Pooled::with(1, pooling()).await;
    let repository = pooled.repository();
    let added = repository.add(AddPet { pet: new_pet() }).await.expect("added");
    let (client, connection) =
        tokio_postgres::connect(&pooled.server.url("postgres"), tokio_postgres::NoTls).await.expect("connected");
    tokio::spawn(connection);
    for _ in 0..20 {
        client.batch_execute("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE").await.expect("the lock");
        let reader = Arc::clone(&repository);
        let read = tokio::spawn(async move { reader.list(None, None, 10).await });
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        let start = Instant::now();
        while client.query_typed_one(waiting, &[]).await.expect("a row").get::<_, i64>(0) == 0 {
            assert!(start.elapsed() < PATIENCE, "nobody reads");
            a_moment().await;
        }
        read.abort();
        assert!(read.await.expect_err("it was dropped").is_cancelled());
        client.batch_execute("COMMIT").await.expect("unlocked");
        assert_eq!(repository.find(added.id()).await.expect("found").as_ref(), Some(&added));
    }
    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(1, LEFT_BEHIND).await, [[""; 0]]);
}

/// Those that are dropped before they are sent, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_can_be_dropped_at_any_moment() {
    let pooled = Pooled::with(1, pooling()).await;
    let repository = pooled.repository();
    let added = repository.add(AddPet { pet: new_pet() }).await.expect("added");
    for number in 0..300 {
        let read = tokio::time::timeout(Duration::from_micros(number * 10), repository.list(None, None, 10));
        if let Ok(list) = read.await {
            assert_eq!(list.expect("a list"), std::slice::from_ref(&added));
        }
    }
    assert_eq!(repository.find(added.id()).await.expect("found"), Some(added));
    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(1, LEFT_BEHIND).await, [[""; 0]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_takes_too_long_is_ended_in_the_server() {
    let timeout = Duration::from_millis(400);
    let pooled = Pooled::with(1, PgSettings { timeout, ..pooling() }).await;
    let repository = pooled.repository();
    repository.add(AddPet { pet: new_pet() }).await.expect("added");
    let (client, connection) =
        tokio_postgres::connect(&pooled.server.url("postgres"), tokio_postgres::NoTls).await.expect("connected");
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE").await.expect("the lock");
    let start = Instant::now();
    let failed = repository.list(None, None, 10).await.expect_err("it is locked");
    assert!(matches!(failed, StorageError::Unavailable(_) | StorageError::Deadline), "{failed:?}");
    assert!(start.elapsed() < timeout * 3, "{:?}", start.elapsed());
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    assert_eq!(client.query_typed_one(waiting, &[]).await.expect("a row").get::<_, i64>(0), 0);

    client.batch_execute("COMMIT").await.expect("unlocked");
    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(1, LEFT_BEHIND).await, [[""; 0]]);
    assert_eq!(repository.list(None, None, 10).await.expect("a list").len(), 1);
}
