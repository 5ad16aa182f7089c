//! Expired records are deleted, batch by batch, and no others.

use crate::prelude::*;

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
    let rows = format!("SELECT {row} FROM generate_series(1, {count}) n");
    session
        .run(&format!("INSERT INTO idempotency_keys {rows}"))
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
        let off = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off";
        observer.run(off).await;
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
        let index = "indexrelname = 'idempotency_keys_expires_at'";
        let read = format!("pg_stat_user_indexes WHERE {index} AND idx_tup_read >= 6001");
        assert_eq!(observer.count(&read).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sweep_deletes_several_batches() {
    let database = PgDatabase::new();
    let settings = PostgresSettings {
        idempotency_retention: Duration::from_millis(400),
        ..settings()
    };
    let _store = Store::at(database.url(), settings).await;
    let observer = SqlSession::of(&database).await;
    observer
        .run(
            "CREATE TABLE batches (pid int, records bigint);
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN INSERT INTO batches SELECT pg_backend_pid(), count(*) FROM deleted; RETURN NULL; END';
            CREATE TRIGGER note AFTER DELETE ON idempotency_keys REFERENCING OLD TABLE AS deleted
            EXECUTE FUNCTION note()",
        )
        .await;
    records(&observer, 2500, EXPIRED).await;
    observer.wait_for_rows("idempotency_keys", 0).await;
    let sweeps = "SELECT count(*) || ' batches' FROM batches WHERE records > 0 GROUP BY pid";
    assert_eq!(observer.column(sweeps).await, ["3 batches"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_records_are_skipped_until_they_are_unlocked() {
    let database = PgDatabase::new();
    let _store = Store::at(database.url(), sweeping()).await;
    let locking = SqlSession::of(&database).await;
    let observer = SqlSession::of(&database).await;
    records(&observer, 1200, "now() + interval '1 hour'").await;
    // A row with this lock can be changed, and not be deleted: no record expires before it is locked.
    let lock = "BEGIN; SELECT FROM idempotency_keys FOR KEY SHARE";
    locking.run(lock).await;
    let expire = "UPDATE idempotency_keys SET expires_at = now() - interval '1 second'";
    observer.run(expire).await;
    records(&observer, 1500, "now() - interval '1 microsecond'").await;
    observer.wait_for_rows("idempotency_keys", 1200).await;
    locking.run("COMMIT").await;
    observer.wait_for_rows("idempotency_keys", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_any_failure_sweeps_go_on() {
    Fixture::in_both_modes_of(&sweeping(), async |mut fixture| {
        let observer = &fixture.observer;
        // A sequence also counts attempts that are rolled back.
        observer
            .run(
                "CREATE SEQUENCE attempts; DELETE FROM idempotency_keys;
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM nextval(''attempts''); RAISE ''no''; END';
                CREATE TRIGGER refuse BEFORE DELETE ON idempotency_keys
                FOR EACH ROW EXECUTE FUNCTION refuse()",
            )
            .await;
        records(observer, 10, EXPIRED).await;
        let attempts = "attempts WHERE last_value >= 3";
        observer.wait_for_rows(attempts, 1).await;
        assert_eq!(observer.count("idempotency_keys").await, 10);
        fixture.proxy.refuse();
        fixture.wait_for(Unavailable).await;
        let observer = &fixture.observer;
        observer.wait_for_backends(0).await;
        observer
            .run("DROP TRIGGER refuse ON idempotency_keys")
            .await;
        assert_eq!(observer.count("idempotency_keys").await, 10);
        fixture.proxy.heal();
        fixture.observer.wait_for_rows("idempotency_keys", 0).await;
    })
    .await;
}
