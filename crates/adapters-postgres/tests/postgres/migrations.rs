//! Migrations: concurrent starts, databases that a newer program has migrated, and tables that are in use.

use tokio::task::JoinSet;

use crate::prelude::*;

/// The versions of all migrations.
const ALL: [&str; 3] = ["0001expand", "0002expand", "0003expand"];

/// The key of the lock, which all releases have in common.
const LOCK: i64 = 4_715_830_265_918_527_103;

fn tables(database: &PgDatabase) -> String {
    database
        .sql("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1")
}

fn history(database: &PgDatabase) -> String {
    database.sql("SELECT version FROM __diesel_schema_migrations ORDER BY 1")
}

async fn start(database: &PgDatabase, settings: PostgresSettings) -> Result<(), String> {
    let started = start_storage(database.url(), database.url(), settings).await;
    started.map(drop).map_err(|error| reason(&error))
}

/// Runs the migrations, and returns their versions.
async fn run(database: &PgDatabase) -> Vec<String> {
    let ran = migrations(database.url()).run().await;
    ran.expect("the migrations run")
}

/// Records a migration of another program.
pub(crate) fn record(database: &PgDatabase, version: &str) {
    let insert = "INSERT INTO __diesel_schema_migrations (version) VALUES";
    database.sql(&format!("{insert} ('{version}')"));
}

async fn pending(database: &PgDatabase) -> Vec<String> {
    let pending = migrations(database.url()).pending().await;
    pending.expect("the names")
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_are_pending_until_they_run_once_and_are_recorded_by_their_versions() {
    let database = PgDatabase::new();
    assert_eq!(pending(&database).await, ALL);
    let refused = start(&database, check()).await;
    let reason = refused.expect_err("there is no table");
    let versions = ALL.join(", ");
    let expected = format!("these migrations are pending: {versions}; run `animal-store migrate`");
    assert!(reason.contains(&expected), "{reason}");
    assert_eq!(tables(&database), "", "reading them changes nothing");
    assert_eq!(run(&database).await, ALL);
    let made = (tables(&database), history(&database));
    assert_eq!(made.1, ALL.join("\n"));

    assert_eq!(pending(&database).await, [""; 0]);
    assert_eq!(run(&database).await, [""; 0]);
    let started = start(&database, check()).await;
    started.expect("the storage starts");
    assert_eq!((tables(&database), history(&database)), made);
}

/// A server with FIPS refuses MD5.
#[tokio::test(flavor = "multi_thread")]
async fn no_migration_needs_md5() {
    let database = PgDatabase::new();
    database.sql(
        "CREATE SCHEMA fips;
        CREATE FUNCTION fips.md5(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'FIPS'; END$$",
    );
    let option = "options=-c%20search_path%3Dpublic,fips,pg_catalog";
    let url = with_option(database.url(), option);
    migrations(&url).run().await.expect("migrated");
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_migrations_keep_keys_from_being_changed_only_before_there_are_tables_of_keys() {
    let database = PgDatabase::new();
    let migrations = migrations(database.url());
    assert!(migrations.check_for_keys().await.is_err());
    run(&database).await;
    database.sql("DELETE FROM __diesel_schema_migrations WHERE version = '0001expand'");
    assert!(migrations.check().await.is_err());
    migrations.check_for_keys().await.expect("there are tables");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_processes_that_start_at_the_same_time_one_runs_them() {
    let database = PgDatabase::new();
    let mut starts = JoinSet::new();
    for _ in 0..10 {
        let url = database.url().to_owned();
        starts.spawn(async move { Store::at(&url, settings()).await });
    }
    for store in starts.join_all().await {
        let list = store.repository.list(None, None, 1).await;
        assert_eq!(list.expect("a list"), []);
    }
    assert_eq!(history(&database), ALL.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expansion_by_a_newer_program_is_accepted_and_another_layout_is_refused_unchanged() {
    for (version, refusal) in [
        ("9999expand", None),
        ("9999contract", Some(["a newer program", ": 9999contract;"])),
        // A program from before the first release recorded whole names.
        (
            "0002_contract_x",
            Some(["from before version 0.1.0", "pets export"]),
        ),
    ] {
        let database = migrated().await;
        record(&database, version);
        let before = (tables(&database), history(&database));
        for settings in [check(), settings()] {
            let started = start(&database, settings).await;
            match refusal {
                None => started.expect("the storage starts"),
                Some(texts) => {
                    let reason = started.expect_err(version);
                    assert!(texts.iter().all(|text| reason.contains(text)), "{reason}");
                }
            }
        }
        match (migrations(database.url()).run().await, refusal) {
            (Ok(ran), None) => assert_eq!(ran, [""; 0]),
            (Err(MigrationError::Unusable(_)), Some(_)) => {}
            (ran, _) => panic!("{version}: {ran:?}"),
        }
        assert_eq!((tables(&database), history(&database)), before);
    }
}

/// An index that is built concurrently waits for every running statement, including one that waits for the lock.
#[tokio::test(flavor = "multi_thread")]
async fn while_another_process_changes_the_schema_and_builds_an_index_nothing_is_changed() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint)");
    let session = SqlSession::of(&database).await;
    session
        .run(&format!("SELECT pg_advisory_lock({LOCK})"))
        .await;
    let migrations = migrations(database.url());
    let start = Instant::now();
    let waiting = tokio::spawn(async move { migrations.run().await });
    let waits = "pg_stat_activity WHERE datname = current_database()
        AND application_name LIKE 'animal-store %' AND query LIKE '%advisory_lock%'";
    session.wait_for_rows(waits, 1).await;
    let index = "CREATE INDEX CONCURRENTLY other_id ON other (id)";
    session.run(index).await;
    let error = waiting.await.expect("no panic").expect_err("it is locked");
    assert!(matches!(&error, MigrationError::Locked(_)), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(5));
    assert_eq!(tables(&database), "other\nother_id");
    assert_eq!(pending(&database).await, ALL);
    session
        .run(&format!("SELECT pg_advisory_unlock({LOCK})"))
        .await;
    assert_eq!(run(&database).await, ALL);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_fails_leaves_nothing_behind() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint); CREATE INDEX pets_status_id ON other (id)");
    let ran = migrations(database.url()).run().await;
    let Err(MigrationError::Failed(text)) = ran else {
        panic!("{ran:?}")
    };
    let expected = format!("migration {} failed: ", ALL[0]);
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains("pets_status_id"), "{text}");
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");
    assert_eq!(history(&database), "");

    database.sql("DROP TABLE other");
    assert_eq!(run(&database).await, ALL);
}

/// The migration that creates `pets` also changes the table `other`, as a migration of a later release would. A
/// sequence keeps its timeout for the lock, in milliseconds, even if it is rolled back.
const CHANGE: &str = "
    CREATE TABLE other (id bigint);
    CREATE SEQUENCE lock_timeout;
    CREATE FUNCTION change_other() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
        IF current_query() LIKE '%CREATE TABLE pets%' THEN
            PERFORM setval('lock_timeout', setting::bigint) FROM pg_settings WHERE name = 'lock_timeout';
            LOCK TABLE other IN ACCESS EXCLUSIVE MODE;
        END IF;
    END$$;
    CREATE EVENT TRIGGER change ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION change_other()";

const WAITING: &str = "pg_locks WHERE NOT granted AND relation = 'other'::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Queries queue behind a migration that waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_until_the_tables_are_free_and_delays_queries_by_less_than_a_second_each_time()
 {
    let database = PgDatabase::new();
    database.sql(CHANGE);
    let reading = SqlSession::of(&database).await;
    let observer = SqlSession::of(&database).await;
    reading
        .run("BEGIN; LOCK TABLE other IN ACCESS SHARE MODE")
        .await;
    let ran = migrations(database.url()).run().await;
    let Err(MigrationError::TablesInUse(text)) = ran else {
        panic!("{ran:?}")
    };
    assert!(text.starts_with("postgres@"), "{text}");
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");
    let timeout = database.sql("SELECT last_value FROM lock_timeout");
    let timeout = timeout.parse().expect("milliseconds");
    assert!((1..1000).contains(&timeout), "{timeout}");

    let url = database.url().to_owned();
    let start = tokio::spawn(async move { Store::at(&url, settings()).await });
    for waiting in [1, 0, 1] {
        observer.wait_for_rows(WAITING, waiting).await;
    }
    assert!(!start.is_finished());
    reading.unlock().await;
    start.await.expect("no panic");
}
