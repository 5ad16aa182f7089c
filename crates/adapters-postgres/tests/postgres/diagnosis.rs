//! Each finding about PostgreSQL, with a server or a database that has this one problem.

use std::time::Duration;

use animal_store_adapters_postgres::{Migrations, PostgresSettings, SchemaMode, diagnose};
use animal_store_app::{
    Finding,
    Verdict::{self, Error, Ok, Unknown, Warning},
};
use animal_store_test_servers::{PgDatabase, PostgresServer};

use crate::{
    pooled::{Pooled, pooling},
    store::{endpoint, proxy_to, settings, short_timeout},
};

/// With [`settings`], an instance opens seven connections.
const WORKERS: usize = 2;

async fn findings(url: &str, settings: &PostgresSettings) -> Vec<Finding> {
    diagnose(&endpoint(url), &endpoint(url), settings, WORKERS).await
}

async fn migrate(url: &str) {
    Migrations::new(endpoint(url), Duration::from_secs(10)).run().await.expect("migrated");
}

async fn migrated() -> PgDatabase {
    let database = PgDatabase::new();
    migrate(database.url()).await;
    database
}

#[track_caller]
fn finding<'a>(findings: &'a [Finding], subject: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.subject == subject);
    found.unwrap_or_else(|| panic!("no {subject}: {findings:#?}"))
}

/// Asserts the verdict about a subject, and that its finding or its advice contains the text.
#[track_caller]
fn assert_finding(findings: &[Finding], subject: &str, verdict: Verdict, text: &str) {
    let finding = finding(findings, subject);
    assert_eq!(finding.verdict, verdict, "{findings:#?}");
    assert_eq!(finding.advice.is_none(), verdict == Ok, "{finding:?}");
    assert!(format!("{} {:?}", finding.found, finding.advice).contains(text), "{text}: {finding:?}");
}

/// The subjects whose verdict is not `ok`.
fn conspicuous(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|finding| finding.verdict != Ok).map(|finding| finding.subject).collect()
}

/// Tables, rows and positions of sequences.
fn contents(server: &PostgresServer) -> String {
    server.sql(
        "postgres",
        "SELECT query_to_xml(format('SELECT * FROM %I', relname), true, true, '')::text FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') ORDER BY relname",
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_server_has_no_finding_but_ok_and_is_not_changed() {
    let server = PostgresServer::with(&["fsync=on"]);
    let url = server.url("postgres");
    assert_eq!(conspicuous(&findings(&url, &settings()).await)[0], "postgres.migrations");
    assert_eq!(contents(&server), "");

    migrate(&url).await;
    server.sql("postgres", "INSERT INTO pets (name, category_id) VALUES ('Rex', 1)");
    let before = contents(&server);
    let found = findings(&url, &settings()).await;
    assert_eq!(conspicuous(&found), [""; 0], "{found:#?}");
    assert_eq!(found.len(), 11, "{found:#?}");
    assert_eq!(contents(&server), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_with_which_a_crash_loses_pets_are_found() {
    let server = PostgresServer::with(&["fsync=off", "synchronous_commit=off"]);
    let found = findings(&server.url("postgres"), &settings()).await;
    assert_finding(&found, "postgres.fsync", Error, "fsync = on");
    assert_finding(&found, "postgres.synchronous_commit", Warning, "201");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_and_newer_migrations_are_found() {
    let database = PgDatabase::new();
    let found = findings(database.url(), &settings()).await;
    assert_finding(&found, "postgres.migrations", Warning, "0001_expand_create_pets");
    assert_finding(&found, "postgres.permissions", Unknown, "idempotency_keys, pets");
    assert_finding(&found, "postgres.plans", Unknown, "\"pets\" does not exist");
    let check = PostgresSettings { schema: SchemaMode::Check, ..settings() };
    assert_finding(&findings(database.url(), &check).await, "postgres.migrations", Error, "animal-store migrate");

    migrate(database.url()).await;
    database.sql("INSERT INTO __diesel_schema_migrations (version) VALUES ('9998_expand_x')");
    assert_finding(&findings(database.url(), &settings()).await, "postgres.migrations", Warning, "9998_expand_x");
    database.sql("INSERT INTO __diesel_schema_migrations (version) VALUES ('9999_contract_x')");
    assert_finding(&findings(database.url(), &settings()).await, "postgres.migrations", Error, "9999_contract_x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_advice_about_missing_permissions_grants_them() {
    let database = migrated().await;
    let role = format!("store_{}", database.name());
    database.sql(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON __diesel_schema_migrations, pets TO {role}"));
    let url = database.url().replace("postgres@", &format!("{role}@"));
    let found = findings(&url, &settings()).await;
    assert_finding(&found, "postgres.permissions", Error, "503");
    assert_finding(&found, "postgres.plans", Unknown, "permission denied");

    let advice = finding(&found, "postgres.permissions").advice.clone().expect("advice");
    let grants = advice.split_once(": ").expect("statements").1;
    assert!(grants.contains("GRANT INSERT ON pets TO ") && grants.contains("ON SEQUENCE pets_id_seq"), "{grants}");
    database.sql(grants);
    let found = findings(&url, &settings()).await;
    // The test server is not durable.
    assert!(conspicuous(&found).iter().all(|&subject| subject == "postgres.fsync"), "{found:#?}");
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_table_is_an_error_if_no_migration_is_pending() {
    let database = migrated().await;
    database.sql("DROP TABLE idempotency_keys");
    let found = findings(database.url(), &settings()).await;
    assert_finding(&found, "postgres.permissions", Error, "idempotency_keys");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_index_is_found_in_the_plans_that_need_it() {
    for (change, statements) in [
        ("DROP INDEX pets_status_id", &["list by status: Sort", "batch of lists by status: Sort"][..]),
        ("ALTER TABLE pets DROP CONSTRAINT pets_pkey", &["get: Sort", "list: Sort", "batch of lists: Sort"]),
        ("ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey", &["creates with a key: there is no"]),
        ("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'pets_status_id'::regclass", &["list by status:"]),
    ] {
        let database = migrated().await;
        database.sql(change);
        let found = findings(database.url(), &settings()).await;
        for statement in statements {
            assert_finding(&found, "postgres.plans", Error, statement);
        }
        let plans = &finding(&found, "postgres.plans").found;
        assert_eq!(
            plans.matches("; ").count() + 1,
            statements.len() + usize::from(change.contains("pg_index")),
            "{plans}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_few_connections_for_another_instance_are_found() {
    let server = PostgresServer::with(&["max_connections=8"]);
    let found = findings(&server.url("postgres"), &settings()).await;
    assert_finding(&found, "postgres.connections", Warning, "of 5 are left; an instance opens 7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_writes_is_found() {
    let database = migrated().await;
    database.sql(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name()));
    assert_finding(&findings(database.url(), &settings()).await, "postgres.writes", Error, "read-only");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_encoding_is_the_only_finding() {
    let database = PgDatabase::encoded("LATIN1");
    let found = findings(database.url(), &settings()).await;
    assert_finding(&found, "postgres.encoding", Error, "LATIN1");
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_responding_ends_the_diagnosis_with_what_was_found_before() {
    let database = migrated().await;
    let (proxy, url) = proxy_to(database.url());
    proxy.hold("pg_stat_database");
    let found = findings(&url, &short_timeout()).await;
    assert_finding(&found, "postgres.connections", Error, "no response in time");
    assert_finding(&found, "postgres.migrations", Ok, "none is pending");
    assert_eq!(found.last().map(|finding| finding.subject), Some("postgres.connections"), "{found:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_the_diagnosis_leaves_nothing_behind() {
    let pooled = Pooled::with(2, pooling()).await;
    let (through, direct) = (endpoint(&pooled.url()), endpoint(&pooled.server.url("postgres")));
    let found = diagnose(&through, &direct, &pooling(), WORKERS).await;
    assert_eq!(conspicuous(&found), ["postgres.fsync", "postgres.connections"], "{found:#?}");
    assert_finding(&found, "postgres.connections", Unknown, "pooler");
    pooled.leaves_nothing_behind().await;

    // A statement that is prepared and cannot be planned.
    pooled.server.sql("postgres", "ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey");
    let found = diagnose(&through, &direct, &pooling(), WORKERS).await;
    assert_finding(&found, "postgres.plans", Error, "creates with a key");
    pooled.leaves_nothing_behind().await;
}
