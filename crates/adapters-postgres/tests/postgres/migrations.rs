//! Which changes of the schema are made, by whom, and what comes of those that are not known here.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::{MigrationError, Migrations, PgStorage, PostgresSettings, SchemaMode};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::PgDatabase;
use tokio::task::JoinSet;

use crate::{
    calls::{PATIENCE, a_moment, reason},
    store::{Store, client, endpoint, settings},
};

const ALL: [&str; 2] = ["0001_expand_create_pets", "0002_expand_create_idempotency_keys"];

/// A random number that every version of the program has to know.
const LOCK: i64 = 4_715_830_265_918_527_103;

fn migrations(database: &PgDatabase) -> Migrations {
    Migrations::new(endpoint(database.url()), Duration::from_secs(10))
}

fn tables(database: &PgDatabase) -> String {
    database.sql("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1")
}

fn history(database: &PgDatabase) -> String {
    database.sql("SELECT version FROM __diesel_schema_migrations ORDER BY 1")
}

/// A database that has seen one more migration than there is.
async fn after_a_newer_program(migration: &str) -> PgDatabase {
    let database = PgDatabase::new();
    migrations(&database).run().await.expect("they run");
    database.sql(&format!("INSERT INTO __diesel_schema_migrations (version) VALUES ('{migration}')"));
    database
}

async fn start(database: &PgDatabase, schema: SchemaMode) -> Result<(), String> {
    let settings = PostgresSettings { schema, ..settings() };
    let started = PgStorage::start(endpoint(database.url()), endpoint(database.url()), settings).await;
    started.map(drop).map_err(|error| reason(&error))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_run_once() {
    let database = PgDatabase::new();
    assert_eq!(migrations(&database).run().await.expect("they run"), ALL);
    assert_eq!(history(&database), ALL.join("\n"));
    let made = tables(&database);

    assert_eq!(migrations(&database).run().await.expect("nothing to do"), [""; 0]);
    assert_eq!((history(&database), tables(&database)), (ALL.join("\n"), made));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_which_are_pending_changes_nothing() {
    let database = PgDatabase::new();
    assert_eq!(migrations(&database).pending().await.expect("the names"), ALL);
    assert_eq!(tables(&database), "");

    migrations(&database).run().await.expect("they run");
    assert_eq!(migrations(&database).pending().await.expect("no names"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_processes_that_start_at_once_one_runs_them() {
    let database = PgDatabase::new();
    let mut starts = JoinSet::new();
    for _ in 0..10 {
        let url = database.url().to_owned();
        starts.spawn(async move { Store::at(&url, settings()).await });
    }
    for Store { repository, storage, mut writer_end } in starts.join_all().await {
        assert_eq!(repository.list(None, None, 1).await.expect("a list"), []);
        drop((repository, storage));
        writer_end.wait().await;
    }
    assert_eq!(history(&database), ALL.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_they_are_only_checked_pending_ones_are_named() {
    let database = PgDatabase::new();
    let reason = start(&database, SchemaMode::Check).await.expect_err("there is no table");
    assert!(reason.contains(ALL[0]) && reason.contains("run `animal-store migrate`"), "{reason}");
    assert_eq!(tables(&database), "");

    migrations(&database).run().await.expect("they run");
    start(&database, SchemaMode::Check).await.expect("it starts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_newer_program_took_away_is_missed() {
    for name in ["9999_contract_x", "9999", "9999_expand_x_contract_y", "00000000000000"] {
        let database = after_a_newer_program(name).await;
        for schema in [SchemaMode::Check, SchemaMode::Migrate] {
            let reason = start(&database, schema).await.expect_err(name);
            assert!(reason.contains("a newer program") && reason.contains(name), "{reason}");
        }
        for result in [migrations(&database).run().await, migrations(&database).pending().await] {
            assert!(matches!(result, Err(MigrationError::Contracted(names)) if names == [name]));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_newer_program_added_is_no_obstacle() {
    let database = after_a_newer_program("9999_expand_x").await;
    for schema in [SchemaMode::Check, SchemaMode::Migrate] {
        start(&database, schema).await.expect("it starts");
    }
    assert_eq!(migrations(&database).run().await.expect("nothing to do"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_somebody_else_changes_the_schema_for_long_nothing_is_changed() {
    let database = PgDatabase::new();
    let client = client(database.url()).await;
    client.batch_execute(&format!("SELECT pg_advisory_lock({LOCK})")).await.expect("the lock");

    let start = Instant::now();
    let error = migrations(&database).run().await.expect_err("it is locked");
    assert!(matches!(&error, MigrationError::Locked(_)) && !error.is_final(), "{error}");
    assert!((4..8).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!(tables(&database), "");
    assert_eq!(migrations(&database).pending().await.expect("the names"), ALL);

    client.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})")).await.expect("unlocked");
    assert_eq!(migrations(&database).run().await.expect("they run"), ALL);
}

/// It waits for every statement that is under way, one that waits for the lock included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_others_wait_for_their_turn_an_index_can_be_built_concurrently() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint)");
    let client = client(database.url()).await;
    client.batch_execute(&format!("SELECT pg_advisory_lock({LOCK})")).await.expect("the lock");
    let migrations = migrations(&database);
    let waiting = tokio::spawn(async move { migrations.run().await });
    let asked = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'animal-store' AND query LIKE '%advisory_lock%'";
    let start = Instant::now();
    while client.query_typed_one(asked, &[]).await.expect("a row").get::<_, i64>(0) == 0 {
        assert!(start.elapsed() < PATIENCE, "nobody waits");
        a_moment().await;
    }

    client.batch_execute("CREATE INDEX CONCURRENTLY other_id ON other (id)").await.expect("an index");
    client.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})")).await.expect("unlocked");
    assert_eq!(waiting.await.expect("it ends").expect("they run"), ALL);
}

/// What was made by somebody else stays as it is; the error says what is in the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_fails_leaves_nothing_behind() {
    let database = PgDatabase::new();
    database.sql("CREATE TABLE other (id bigint); CREATE INDEX pets_status_id ON other (id)");
    let error = migrations(&database).run().await.expect_err("the name is taken");
    assert!(!error.is_final() && error.to_string().contains("pets_status_id"), "{error}");
    assert!(matches!(&error, MigrationError::Failed { name, .. } if name == ALL[0]), "{error}");
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");
    assert_eq!(history(&database), "");

    database.sql("DROP TABLE other");
    assert_eq!(migrations(&database).run().await.expect("they run"), ALL);
}
