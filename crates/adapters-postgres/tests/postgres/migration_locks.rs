//! Migrations that wait for the lock of a table which another session uses.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::MigrationError;
use animal_store_test_servers::PgDatabase;

use crate::{
    outcomes::PROMPT,
    sql_session::SqlSession,
    store::{endpoint, migrations, settings, start_storage},
};

/// The migration that creates `pets` also changes the table `other`, as a migration of a later release would.
const CHANGE: &str = "
    CREATE TABLE other (id bigint);
    CREATE FUNCTION change_other() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
        IF current_query() LIKE '%CREATE TABLE pets%' THEN LOCK TABLE other IN ACCESS EXCLUSIVE MODE; END IF;
    END$$;
    CREATE EVENT TRIGGER change ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION change_other()";

const WAITING: &str = "pg_locks WHERE NOT granted AND relation = 'other'::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// A database with such a pending migration, and a session that reads the table, as a backup does.
async fn while_a_session_reads() -> (PgDatabase, SqlSession) {
    let database = PgDatabase::new();
    database.sql(CHANGE);
    let reading = SqlSession::of(&database).await;
    reading.run("BEGIN; LOCK TABLE other IN ACCESS SHARE MODE").await;
    (database, reading)
}

/// Runs the migrations, and reads the table again and again meanwhile. Returns the longest read.
async fn longest_read(database: &PgDatabase, reads: &SqlSession) -> Duration {
    let migrations = migrations(database.url());
    let run = tokio::spawn(async move { migrations.run().await });
    let mut longest = Duration::ZERO;
    while !run.is_finished() {
        let start = Instant::now();
        reads.run("SELECT FROM other").await;
        longest = longest.max(start.elapsed());
    }
    let error = run.await.expect("no panic").expect_err("the table is in use");
    assert!(matches!(error, MigrationError::TablesInUse(_)), "{error:?}");
    assert!(error.to_string().contains("another session uses the tables: postgres@"), "{error}");
    longest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_waits_for_a_table_delays_reads_by_less_than_a_second() {
    let (database, reading) = while_a_session_reads().await;
    let reads = SqlSession::of(&database).await;
    let mut longest = Vec::new();
    for _ in 0..3 {
        longest.push(longest_read(&database, &reads).await);
    }
    // The machine may stall during one of them.
    assert!(longest.iter().min() < Some(&Duration::from_secs(1)), "{longest:?}");
    assert!(longest.iter().max() > Some(&Duration::from_millis(100)), "no read waited: {longest:?}");
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");

    reading.unlock().await;
    assert_eq!(migrations(database.url()).run().await.expect("the table is free"), ["0001expand"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_until_the_tables_are_free() {
    let (database, reading) = while_a_session_reads().await;
    let observer = SqlSession::of(&database).await;
    let (url, other_url) = (database.url().to_owned(), database.url().to_owned());
    let start = tokio::spawn(async move { start_storage(endpoint(&url), endpoint(&other_url), settings()).await });
    for waiting in [1, 0, 1] {
        observer.wait_for_rows(WAITING, waiting).await;
    }
    assert!(!start.is_finished());
    reading.unlock().await;
    let started = tokio::time::timeout(PROMPT, start).await.expect("the start ends").expect("no panic");
    drop(started.expect("a storage"));
}
