//! Migrations: concurrent starts, and databases that a newer program has migrated.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::{MigrationError, PostgresSettings, SchemaMode};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::PgDatabase;
use tokio::task::JoinSet;

use crate::{
    outcomes::{eventually, reason},
    sql_session::client,
    store::{Store, endpoint, migrations, settings, start_storage},
};

/// The versions of all migrations.
const ALL: [&str; 1] = ["0001expand"];

/// The key of the lock, which all releases have in common.
const LOCK: i64 = 4_715_830_265_918_527_103;

fn tables(database: &PgDatabase) -> String {
    database.sql("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1")
}

fn history(database: &PgDatabase) -> String {
    database.sql("SELECT version FROM __diesel_schema_migrations ORDER BY 1")
}

/// A database with the record of one more migration.
async fn after_newer_program(migration: &str) -> PgDatabase {
    let database = PgDatabase::new();
    migrations(database.url()).run().await.expect("the migrations run");
    database.sql(&format!("INSERT INTO __diesel_schema_migrations (version) VALUES ('{migration}')"));
    database
}

async fn start(database: &PgDatabase, schema: SchemaMode) -> Result<(), String> {
    let settings = PostgresSettings { schema, ..settings() };
    let started = start_storage(endpoint(database.url()), endpoint(database.url()), settings).await;
    started.map(drop).map_err(|error| reason(&error))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_are_pending_until_they_run_once_and_are_recorded_by_their_versions() {
    let database = PgDatabase::new();
    assert_eq!(migrations(database.url()).pending().await.expect("the names"), ALL);
    assert_eq!(tables(&database), "", "reading them changes nothing");
    assert_eq!(migrations(database.url()).run().await.expect("the migrations run"), ALL);
    assert_eq!(history(&database), ALL.join("\n"));
    let made = tables(&database);

    assert_eq!(migrations(database.url()).pending().await.expect("no names"), [""; 0]);
    assert_eq!(migrations(database.url()).run().await.expect("nothing to do"), [""; 0]);
    assert_eq!((history(&database), tables(&database)), (ALL.join("\n"), made));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_processes_that_start_at_the_same_time_one_runs_them() {
    let database = PgDatabase::new();
    let mut starts = JoinSet::new();
    for _ in 0..10 {
        let url = database.url().to_owned();
        starts.spawn(async move { Store::at(&url, settings()).await });
    }
    for Store { repository, storage, writer, .. } in starts.join_all().await {
        assert_eq!(repository.list(None, None, 1).await.expect("a list"), []);
        drop((repository, storage));
        writer.await.expect("no panic");
    }
    assert_eq!(history(&database), ALL.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_reports_pending_migrations() {
    let database = PgDatabase::new();
    let reason = start(&database, SchemaMode::Check).await.expect_err("there is no table");
    assert!(reason.contains("these migrations are pending: 0001expand; run `animal-store migrate`"), "{reason}");
    assert_eq!(tables(&database), "");

    migrations(database.url()).run().await.expect("the migrations run");
    start(&database, SchemaMode::Check).await.expect("the storage starts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contraction_by_a_newer_program_is_an_error() {
    let database = after_newer_program("9999contract").await;
    for schema in [SchemaMode::Check, SchemaMode::Migrate] {
        let reason = start(&database, schema).await.expect_err("a contraction");
        assert!(reason.contains("a newer program") && reason.contains("9999contract"), "{reason}");
    }
    for result in [migrations(database.url()).run().await, migrations(database.url()).pending().await] {
        assert!(
            matches!(&result, Err(MigrationError::Unusable(text)) if text.contains(": 9999contract;")),
            "{result:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expansion_by_a_newer_program_is_accepted() {
    let database = after_newer_program("9999expand").await;
    for schema in [SchemaMode::Check, SchemaMode::Migrate] {
        start(&database, schema).await.expect("the storage starts");
    }
    assert_eq!(migrations(database.url()).run().await.expect("nothing to do"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_another_process_changes_the_schema_nothing_is_changed() {
    let database = PgDatabase::new();
    let client = client(database.url()).await;
    client.batch_execute(&format!("SELECT pg_advisory_lock({LOCK})")).await.expect("the lock");

    let start = Instant::now();
    let error = migrations(database.url()).run().await.expect_err("it is locked");
    assert!(matches!(&error, MigrationError::Locked(_)), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(tables(&database), "");
    assert_eq!(migrations(database.url()).pending().await.expect("the names"), ALL);

    client.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})")).await.expect("unlocked");
    assert_eq!(migrations(database.url()).run().await.expect("the migrations run"), ALL);
}

/// The index waits for every running statement, including one that waits for the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_other_processes_wait_an_index_can_be_built_concurrently() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint)");
    let client = client(database.url()).await;
    client.batch_execute(&format!("SELECT pg_advisory_lock({LOCK})")).await.expect("the lock");
    let migrations = migrations(database.url());
    let waiting = tokio::spawn(async move { migrations.run().await });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'animal-store %' AND query LIKE '%advisory_lock%'";
    let count = async || client.query_typed_one(waits, &[]).await.expect("a row").get::<_, i64>(0);
    eventually("it waits for the lock", async || count().await > 0).await;

    client.batch_execute("CREATE INDEX CONCURRENTLY other_id ON other (id)").await.expect("an index");
    client.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})")).await.expect("unlocked");
    assert_eq!(waiting.await.expect("no panic").expect("the migrations run"), ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_fails_leaves_nothing_behind() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint); CREATE INDEX pets_status_id ON other (id)");
    let error = migrations(database.url()).run().await.expect_err("the name is taken");
    let expected = format!("migration {} failed: ", ALL[0]);
    assert!(matches!(&error, MigrationError::Failed(text) if text.starts_with(&expected)), "{error}");
    assert!(error.to_string().contains("pets_status_id"), "{error}");
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");
    assert_eq!(history(&database), "");

    database.sql("DROP TABLE other");
    assert_eq!(migrations(database.url()).run().await.expect("the migrations run"), ALL);
}

/// It recorded whole names, also of migrations that the next program of that layout contained.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_program_from_before_the_first_release_is_refused_unchanged() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE __diesel_schema_migrations (version varchar(50) PRIMARY KEY)");
    database.sql("INSERT INTO __diesel_schema_migrations VALUES ('0001_expand_create_pets'), ('0002_contract_x')");
    let before = (tables(&database), history(&database));
    for schema in [SchemaMode::Check, SchemaMode::Migrate] {
        let reason = start(&database, schema).await.expect_err("an older layout");
        assert!(reason.contains("from before version 0.1.0") && reason.contains("pets export"), "{reason}");
    }
    let error = migrations(database.url()).run().await.expect_err("an older layout");
    assert!(matches!(error, MigrationError::Unusable(_)), "{error}");
    assert_eq!((tables(&database), history(&database)), before);
}

#[test]
fn every_migration_is_named_by_its_number_and_its_kind() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry"));
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    assert_eq!(names.len(), ALL.len());
    for (index, name) in names.iter().enumerate() {
        let rest = name.strip_prefix(&format!("{:04}-", index + 1)).expect(name);
        let subject = rest.strip_prefix("expand_").or(rest.strip_prefix("contract_")).expect(name);
        assert!(!subject.is_empty(), "{name}");
        let is_plain = |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
        assert!(subject.bytes().all(is_plain), "{name}");
    }
}
