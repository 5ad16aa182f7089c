//! Expired records are deleted, batch by batch, and no others.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::PgDatabase;

use crate::{
    fixture::Fixture,
    outcomes::{Unavailable, wait_for_outcome, wait_until},
    sql_session::SqlSession,
    store::{Store, in_both_modes, settings},
};

/// A sweep every 10 to 20 ms.
fn sweeping() -> PostgresSettings {
    PostgresSettings {
        idempotency_retention: Duration::from_millis(40),
        ..settings()
    }
}

/// Inserts this number of records with this expiry.
async fn records(session: &SqlSession, count: usize, end: &str) {
    let row = format!("'farm', sha256(($${end}$$ || n)::bytea), '', n, {end}");
    session
        .run(&format!(
            "INSERT INTO idempotency_keys SELECT {row} FROM generate_series(1, {count}) n"
        ))
        .await;
}

const EXPIRED: &str = "now() - interval '1 second' * n";

#[tokio::test(flavor = "multi_thread")]
async fn all_expired_records_are_found_by_the_index_and_deleted_and_no_others() {
    in_both_modes(&sweeping(), async |settings| {
        let database = PgDatabase::new();
        let store = Store::at(database.url(), settings).await;
        let observer = SqlSession::of(&database).await;
        // No other session reads the index.
        observer.run("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off").await;
        records(&observer, 10, "now() + interval '1 hour'").await;
        records(&observer, 10, "'infinity'").await;
        records(&observer, 3500, EXPIRED).await;
        // More records with the same expiry than one batch of the sweep deletes.
        records(&observer, 2500, "now() - interval '1 hour'").await;
        observer.wait_for_rows("idempotency_keys", 20).await;
        records(&observer, 1, EXPIRED).await;
        observer.wait_for_rows("idempotency_keys", 20).await;
        // A session reports its statistics at its end.
        drop(store);
        observer.wait_for_backends(0).await;
        let read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'idempotency_keys_expires_at'";
        let read: usize = observer.column(read).await[0].parse().expect("a number");
        assert!(read >= 6001, "{read} entries of the index were read");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sweep_deletes_several_batches() {
    let database = PgDatabase::new();
    let retention = Duration::from_millis(400);
    let _store = Store::at(
        database.url(),
        PostgresSettings {
            idempotency_retention: retention,
            ..settings()
        },
    )
    .await;
    let observer = SqlSession::of(&database).await;
    observer
        .run("CREATE TABLE fixture (pid int, records bigint)")
        .await;
    let body = "BEGIN INSERT INTO fixture SELECT pg_backend_pid(), count(*) FROM deleted; RETURN NULL; END";
    observer
        .run(&format!(
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS '{body}'"
        ))
        .await;
    let trigger =
        "AFTER DELETE ON idempotency_keys REFERENCING OLD TABLE AS deleted EXECUTE FUNCTION note()";
    observer
        .run(&format!("CREATE TRIGGER note {trigger}"))
        .await;
    records(&observer, 2500, EXPIRED).await;
    observer.wait_for_rows("idempotency_keys", 0).await;
    let sweeps = "SELECT count(*) || ' batches' FROM fixture WHERE records > 0 GROUP BY pid";
    assert_eq!(observer.column(sweeps).await, ["3 batches"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_records_are_skipped_until_they_are_unlocked() {
    let database = PgDatabase::new();
    let _store = Store::at(database.url(), sweeping()).await;
    let locking = SqlSession::of(&database).await;
    let observer = SqlSession::of(&database).await;
    records(&observer, 1200, "now() + interval '1 second'").await;
    locking
        .run("BEGIN; SELECT FROM idempotency_keys FOR UPDATE")
        .await;
    wait_until("all expired", async || {
        observer
            .count("idempotency_keys WHERE expires_at > now()")
            .await
            == 0
    })
    .await;
    records(&observer, 1500, "now() - interval '1 microsecond'").await;
    observer.wait_for_rows("idempotency_keys", 1200).await;
    locking.run("COMMIT").await;
    observer.wait_for_rows("idempotency_keys", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_any_failure_sweeps_go_on() {
    in_both_modes(&sweeping(), async |settings| {
        let (fixture, mut proxy) = Fixture::proxied(settings).await;
        let body = "BEGIN PERFORM nextval(''attempts''); RAISE ''no''; END";
        fixture
            .observer
            .run(&format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS '{body}'"
            ))
            .await;
        let trigger = "BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION refuse()";
        // A sequence also counts attempts that are rolled back.
        fixture
            .observer
            .run(&format!(
                "CREATE SEQUENCE attempts; CREATE TRIGGER refuse {trigger}"
            ))
            .await;
        records(&fixture.observer, 10, EXPIRED).await;
        let attempts = "attempts WHERE last_value >= 3";
        wait_until("three attempts", async || {
            fixture.observer.count(attempts).await == 1
        })
        .await;
        assert_eq!(fixture.observer.count("idempotency_keys").await, 10);
        proxy.refuse();
        wait_for_outcome(&fixture.store.repository, Unavailable).await;
        fixture.observer.wait_for_backends(0).await;
        fixture
            .observer
            .run("DROP TRIGGER refuse ON idempotency_keys")
            .await;
        assert_eq!(fixture.observer.count("idempotency_keys").await, 10);
        proxy.heal();
        fixture.observer.wait_for_rows("idempotency_keys", 0).await;
    })
    .await;
}
