//! Migrations: concurrent starts, databases that a newer program has migrated, and tables that are in use.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::{MigrationError, PostgresSettings, SchemaMode};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::PgDatabase;
use tokio::task::JoinSet;

use crate::{
    outcomes::{reason, wait_until},
    sql_session::{SqlSession, client},
    store::{Store, endpoint, migrations, settings, start_storage},
};

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

async fn start(database: &PgDatabase, schema: SchemaMode) -> Result<(), String> {
    let settings = PostgresSettings {
        schema,
        ..settings()
    };
    let started = start_storage(endpoint(database.url()), endpoint(database.url()), settings).await;
    started.map(drop).map_err(|error| reason(&error))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_are_pending_until_they_run_once_and_are_recorded_by_their_versions() {
    let database = PgDatabase::new();
    assert_eq!(
        migrations(database.url())
            .pending()
            .await
            .expect("the names"),
        ALL
    );
    let reason = start(&database, SchemaMode::Check)
        .await
        .expect_err("there is no table");
    assert!(
        reason.contains(
            "these migrations are pending: 0001expand, 0002expand, 0003expand; run `animal-store migrate`"
        ),
        "{reason}"
    );
    assert_eq!(tables(&database), "", "reading them changes nothing");
    assert_eq!(
        migrations(database.url())
            .run()
            .await
            .expect("the migrations run"),
        ALL
    );
    assert_eq!(history(&database), ALL.join("\n"));
    let made = tables(&database);

    assert_eq!(
        migrations(database.url())
            .pending()
            .await
            .expect("no names"),
        [""; 0]
    );
    assert_eq!(
        migrations(database.url())
            .run()
            .await
            .expect("nothing to do"),
        [""; 0]
    );
    start(&database, SchemaMode::Check)
        .await
        .expect("the storage starts");
    assert_eq!(
        (history(&database), tables(&database)),
        (ALL.join("\n"), made)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_processes_that_start_at_the_same_time_one_runs_them() {
    let database = PgDatabase::new();
    let mut starts = JoinSet::new();
    for _ in 0..10 {
        let url = database.url().to_owned();
        starts.spawn(async move { Store::at(&url, settings()).await });
    }
    for Store {
        repository,
        storage,
        writer,
        ..
    } in starts.join_all().await
    {
        assert_eq!(repository.list(None, None, 1).await.expect("a list"), []);
        drop((repository, storage));
        writer.await.expect("no panic");
    }
    assert_eq!(history(&database), ALL.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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
        let database = PgDatabase::new();
        migrations(database.url())
            .run()
            .await
            .expect("the migrations run");
        database.sql(&format!(
            "INSERT INTO __diesel_schema_migrations (version) VALUES ('{version}')"
        ));
        let before = (tables(&database), history(&database));
        let Some(texts) = refusal else {
            for schema in [SchemaMode::Check, SchemaMode::Migrate] {
                start(&database, schema).await.expect("the storage starts");
            }
            assert_eq!(
                migrations(database.url())
                    .run()
                    .await
                    .expect("nothing to do"),
                [""; 0]
            );
            continue;
        };
        for schema in [SchemaMode::Check, SchemaMode::Migrate] {
            let reason = start(&database, schema).await.expect_err(version);
            assert!(texts.iter().all(|text| reason.contains(text)), "{reason}");
        }
        for result in [
            migrations(database.url()).run().await,
            migrations(database.url()).pending().await,
        ] {
            assert!(
                matches!(&result, Err(MigrationError::Unusable(_))),
                "{result:?}"
            );
        }
        assert_eq!((tables(&database), history(&database)), before);
    }
}

/// An index that is built concurrently waits for every running statement, including one that waits for the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_another_process_changes_the_schema_and_builds_an_index_nothing_is_changed() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint)");
    let client = client(database.url()).await;
    client
        .batch_execute(&format!("SELECT pg_advisory_lock({LOCK})"))
        .await
        .expect("the lock");
    let migrations = Arc::new(migrations(database.url()));
    let start = Instant::now();
    let waiting = Arc::clone(&migrations);
    let waiting = tokio::spawn(async move { waiting.run().await });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'animal-store %' AND query LIKE '%advisory_lock%'";
    let count = async || {
        client
            .query_typed_one(waits, &[])
            .await
            .expect("a row")
            .get::<_, i64>(0)
    };
    wait_until("it waits for the lock", async || count().await > 0).await;
    client
        .batch_execute("CREATE INDEX CONCURRENTLY other_id ON other (id)")
        .await
        .expect("an index");

    let error = waiting.await.expect("no panic").expect_err("it is locked");
    assert!(matches!(&error, MigrationError::Locked(_)), "{error}");
    assert!(
        start.elapsed() >= Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(tables(&database), "other\nother_id");
    assert_eq!(migrations.pending().await.expect("the names"), ALL);
    client
        .batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})"))
        .await
        .expect("unlocked");
    assert_eq!(migrations.run().await.expect("the migrations run"), ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_fails_leaves_nothing_behind() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint); CREATE INDEX pets_status_id ON other (id)");
    let error = migrations(database.url())
        .run()
        .await
        .expect_err("the name is taken");
    let expected = format!("migration {} failed: ", ALL[0]);
    assert!(
        matches!(&error, MigrationError::Failed(text) if text.starts_with(&expected)),
        "{error}"
    );
    assert!(error.to_string().contains("pets_status_id"), "{error}");
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");
    assert_eq!(history(&database), "");

    database.sql("DROP TABLE other");
    assert_eq!(
        migrations(database.url())
            .run()
            .await
            .expect("the migrations run"),
        ALL
    );
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_until_the_tables_are_free_and_delays_queries_by_less_than_a_second_each_time()
 {
    let database = PgDatabase::new();
    database.sql(CHANGE);
    let reading = SqlSession::of(&database).await;
    let observer = SqlSession::of(&database).await;
    reading
        .run("BEGIN; LOCK TABLE other IN ACCESS SHARE MODE")
        .await;
    let error = migrations(database.url())
        .run()
        .await
        .expect_err("the table is in use");
    assert!(matches!(error, MigrationError::TablesInUse(_)), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("another session uses the tables: postgres@"),
        "{error}"
    );
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");
    let timeout: u32 = database
        .sql("SELECT last_value FROM lock_timeout")
        .parse()
        .expect("milliseconds");
    assert!((1..1000).contains(&timeout), "{timeout}");

    let url = database.url().to_owned();
    let other_url = database.url().to_owned();
    let start = tokio::spawn(async move {
        start_storage(endpoint(&url), endpoint(&other_url), settings()).await
    });
    for waiting in [1, 0, 1] {
        observer.wait_for_rows(WAITING, waiting).await;
    }
    assert!(!start.is_finished());
    reading.unlock().await;
    drop(start.await.expect("no panic").expect("a storage"));
}

#[test]
fn every_migration_is_named_by_its_number_and_its_kind() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let entries = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry"));
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names.len(), ALL.len());
    for (index, name) in names.iter().enumerate() {
        let rest = name
            .strip_prefix(&format!("{:04}-", index + 1))
            .expect(name);
        let subject = rest
            .strip_prefix("expand_")
            .or(rest.strip_prefix("contract_"))
            .expect(name);
        assert!(!subject.is_empty(), "{name}");
        let is_plain =
            |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
        assert!(subject.bytes().all(is_plain), "{name}");
    }
}
