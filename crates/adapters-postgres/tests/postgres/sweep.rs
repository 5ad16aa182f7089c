//! Records whose time is over go, a batch after the other, whatever else there is, and nothing else goes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::PgDatabase;

use crate::{
    calls::{AT_ONCE, PATIENCE, Unavailable, a_moment, comes_to},
    keyed::{Again, Busy, New, ask},
    session::Session,
    store::{Linked, Store, both_ways, settings},
};

/// A sweep every 10 to 20 ms.
fn sweeping() -> PostgresSettings {
    PostgresSettings { idempotency_retention: Duration::from_millis(40), ..settings() }
}

/// So many records that end at this time.
async fn records(session: &Session, count: usize, end: &str) {
    let row = format!("'farm', sha256(($${end}$$ || n)::bytea), '', n, {end}");
    session.run(&format!("INSERT INTO idempotency_keys SELECT {row} FROM generate_series(1, {count}) n")).await;
}

const OVER: &str = "now() - interval '1 second' * n";

async fn come_to_be(session: &Session, expected: usize) {
    let start = Instant::now();
    loop {
        let count = session.count("idempotency_keys").await;
        if count == expected {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{count} records, and not {expected}");
        a_moment().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_is_over_goes_by_the_index_and_nothing_else_does() {
    for settings in both_ways(&sweeping()) {
        let database = PgDatabase::new();
        let store = Store::at(database.url(), settings).await;
        let other = Session::of(&database).await;
        // The index is read by nobody else.
        other.run("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off").await;
        records(&other, 10, "now() + interval '1 hour'").await;
        records(&other, 10, "'infinity'").await;
        records(&other, 3500, OVER).await;
        // All of one batch of creates.
        records(&other, 2500, "now() - interval '1 hour'").await;
        come_to_be(&other, 20).await;
        records(&other, 1, OVER).await;
        come_to_be(&other, 20).await;
        // What was done by those that are gone is counted.
        drop(store);
        other.wait_for_backends(0).await;
        let read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'idempotency_keys_expires_at'";
        let read: usize = other.column(read).await[0].parse().expect("a number");
        assert!(read >= 6001, "{read} entries of the index were read");
    }
}

/// Times are written in many ways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_batch_goes_on_where_the_last_one_ended_however_times_are_written() {
    for zone in ["Africa/Maputo", "Asia/Manila"] {
        let database = PgDatabase::new();
        for setting in ["DateStyle = 'SQL, DMY'".to_owned(), format!("TimeZone = '{zone}'")] {
            database.sql(&format!("ALTER DATABASE {} SET {setting}", database.name()));
        }
        // There is one sweep while this waits, and no second.
        let retention = Duration::from_secs(4);
        let store =
            Store::at(database.url(), PostgresSettings { idempotency_retention: retention, ..settings() }).await;
        let other = Session::of(&database).await;
        other.run("CREATE TABLE batches (pid int, records bigint)").await;
        let body = "BEGIN INSERT INTO batches SELECT pg_backend_pid(), count(*) FROM deleted; RETURN NULL; END";
        other.run(&format!("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS '{body}'")).await;
        let trigger = "AFTER DELETE ON idempotency_keys REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION note()";
        other.run(&format!("CREATE TRIGGER note {trigger}")).await;
        records(&other, 2500, OVER).await;
        come_to_be(&other, 0).await;
        let sweeps = other.column("SELECT DISTINCT pid FROM batches WHERE records > 0").await.len();
        assert_eq!(sweeps, 1, "{zone}");
        drop(store);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_locked_is_passed_over_until_it_is_not() {
    let database = PgDatabase::new();
    let _store = Store::at(database.url(), sweeping()).await;
    let (locking, other) = (Session::of(&database).await, Session::of(&database).await);
    records(&other, 1200, "now() + interval '1 second'").await;
    locking.run("BEGIN; SELECT FROM idempotency_keys FOR UPDATE").await;
    let start = Instant::now();
    while other.count("idempotency_keys WHERE expires_at > now()").await > 0 {
        assert!(start.elapsed() < PATIENCE, "they do not end");
        a_moment().await;
    }
    records(&other, 1500, "now() - interval '1 microsecond'").await;
    come_to_be(&other, 1200).await;
    locking.run("COMMIT").await;
    come_to_be(&other, 0).await;
}

/// The first process that sweeps is held up in its midst.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_is_at_is_left_to_that_one() {
    let database = PgDatabase::new();
    let _stores = [Store::at(database.url(), sweeping()).await, Store::at(database.url(), sweeping()).await];
    let other = Session::of(&database).await;
    let body = "BEGIN IF pg_try_advisory_xact_lock(1) THEN PERFORM pg_advisory_xact_lock(2); END IF; RETURN OLD; END";
    other.run(&format!("CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS '{body}'")).await;
    other.run("CREATE TRIGGER wait BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION wait()").await;
    other.run("SELECT pg_advisory_lock(2)").await;
    records(&other, 4500, OVER).await;
    come_to_be(&other, 1000).await;
    other.wait_for_locks("advisory", 1).await;
    other.run("SELECT pg_advisory_unlock(2)").await;
    come_to_be(&other, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_failure_stops_it_for_good() {
    for settings in both_ways(&sweeping()) {
        let mut linked = Linked::new(settings).await;
        let body = "BEGIN PERFORM nextval(''attempts''); RAISE ''no''; END";
        linked.other.run(&format!("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '{body}'")).await;
        let trigger = "BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION refuse()";
        // It counts also what is rolled back.
        linked.other.run(&format!("CREATE SEQUENCE attempts; CREATE TRIGGER refuse {trigger}")).await;
        records(&linked.other, 10, OVER).await;
        let start = Instant::now();
        while linked.other.count("attempts WHERE last_value >= 3").await == 0 {
            assert!(start.elapsed() < PATIENCE, "it does not try again");
            a_moment().await;
        }
        assert_eq!(linked.other.count("idempotency_keys").await, 10);
        linked.link.refuse();
        comes_to(&linked.store.repository, Unavailable, AT_ONCE).await;
        linked.other.wait_for_backends(0).await;
        linked.other.run("DROP TRIGGER refuse ON idempotency_keys").await;
        assert_eq!(linked.other.count("idempotency_keys").await, 10);
        linked.link.heal();
        come_to_be(&linked.other, 0).await;
    }
}

/// Keys are taken anew while their records are swept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_told_that_an_animal_is_new_finds_it_once_while_records_are_swept() {
    let database = PgDatabase::new();
    let stores = [Store::at(database.url(), sweeping()).await, Store::at(database.url(), sweeping()).await];
    let other = Session::of(&database).await;
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let repository = Arc::clone(&stores[client % 2].repository);
            tokio::spawn(async move {
                let mut new = 0;
                for number in 0..150 {
                    match ask(&repository, &((client + number) % 5).to_string()).await {
                        New(_) => new += 1,
                        Again(_) | Busy => {}
                        other => panic!("{other:?}"),
                    }
                }
                new
            })
        })
        .collect();
    let mut new = 0;
    for client in clients {
        new += client.await.expect("it ends");
    }
    assert!(new > 5, "nothing was taken anew");
    assert_eq!(other.count("pets").await, new);
    assert_eq!(other.count("(SELECT DISTINCT id FROM pets) pets").await, new);
    come_to_be(&other, 0).await;
}
